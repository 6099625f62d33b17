"""The options → a configuration file with every one of them as a comment. Pure."""

import textwrap
from itertools import groupby

from hami_mock.settings.options import OPTIONS, Option

_HEAD = """\
# Configuration of hami-mock: `hami-mock run --config FILE`.
# Lines that begin with # and a key show the default; remove the # to change it. Variables
# (HAMI_MOCK_NVIDIA_CARDS) and flags (--nvidia-cards) override this file.
"""

_GROUPS = """\

# ---- Cards of different models on one node, with NUMA nodes and NVLink
# (for any vendor, instead of its cards, model and memory)
#
# nvidia-groups:
#   - {cards: 4, model: A100-SXM4-80GB, numa: [0, 0, 1, 1], nvlink: [[0, 1], [2, 3]]}
#   - {cards: 2, model: T4, numa: 1}

# ---- Options for some nodes only: the first section that matches the node's name applies
#
# nodes:
#   - match: ["a100-*", "dgx-?"]
#     nvidia-cards: 8
#     nvidia-model: A100-SXM4-80GB
"""


def config_template() -> str:
    options = (option for option in OPTIONS if option.name != "config")
    sections = groupby(options, key=lambda option: option.section)
    texts = [f"\n# ---- {name}\n{''.join(map(_entry, own))}" for name, own in sections]
    return "".join([_HEAD, *texts, _GROUPS])


def _entry(option: Option) -> str:
    about = textwrap.wrap(f"{option.help}: {option.kind.allowed}", 96, break_on_hyphens=False)
    default = option.shown_default
    # What YAML would take for something else than a text.
    quoted = f'"{default}"' if default.startswith((":", "[")) else default
    lines = [*(f"# {line}" for line in about), f"#{option.name}: {quoted}".rstrip()]
    return "\n" + "\n".join(lines) + "\n"
