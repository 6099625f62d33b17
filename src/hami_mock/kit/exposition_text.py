"""Prometheus' text format: what each writer of it needs. Pure."""

from collections.abc import Iterable


def head_text(name: str, help_text: str, kind: str) -> str:
    return f"# HELP {name} {help_text}\n# TYPE {name} {kind}\n"


def escaped(text: str) -> str:
    """Return a label's text as it stands between its quotes."""
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def sample_text(name: str, labels: Iterable[tuple[str, str]], value: float) -> str:
    """Return a line with one value; its labels are sorted, as most libraries do it."""
    written = ",".join(f'{label}="{escaped(text)}"' for label, text in sorted(labels))
    return f"{name}{{{written}}} {float(value)}\n" if written else f"{name} {float(value)}\n"
