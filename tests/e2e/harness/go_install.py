"""Programs of a published Go module: the cached ones, or compiled once into the cache."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .cache import appearing_whole, cache_folder, exclusive
from .commands import GO_FLAGS, GO_SETTINGS, run
from .errors import CommandFailed, RequirementsMissing
from .progress import Progress

COMPILE_TIMEOUT_S = 1800.0


@dataclass(frozen=True)
class GoProgram:
    """Packages of one module at one version; `link` says more to the linker."""

    name: str
    module: str
    version: str
    packages: tuple[str, ...]
    link: str = ""
    # What to do where it can't be compiled.
    otherwise: tuple[str, ...] = ()

    def folder(
        self, progress: Progress | None = None, also: Callable[[Path], None] | None = None
    ) -> Path:
        """The folder with the programs, and with what `also` puts there when it is made.

        Raises RequirementsMissing when they can't be had.
        """
        target = cache_folder() / self.name / self.version
        if target.exists():
            return target
        if shutil.which("go") is None:
            missing = f"go is missing, which {self.name} {self.version} is compiled with"
            raise RequirementsMissing([missing, *self.otherwise])
        with exclusive(f"{self.name}-{self.version}"):
            if not target.exists():  # else another run compiled it while this one waited
                with appearing_whole(target) as scratch:
                    scratch.mkdir()
                    label = f"compile {self.name} {self.version} (once, takes minutes)"
                    with (progress or Progress()).step(label):
                        self._fill(scratch, also)
        return target

    def _fill(self, folder: Path, also: Callable[[Path], None] | None) -> None:
        # A module of our own that requires it: `go install` would ask the proxy for modules with
        # the packages' names too, which not every proxy takes well.
        own = folder.parent / "module"
        own.mkdir()
        packages = [f"{self.module}/{package}" for package in self.packages]
        link = f"-ldflags=-s -w {self.link}"
        # Its own temporary files go where the next run finds them, should this one be killed.
        settings = {"CGO_ENABLED": "0", "GOTMPDIR": str(own), **GO_SETTINGS}
        build = ["nice", "-n", "10", "go", "build", "-mod=mod", *GO_FLAGS, link]
        try:
            (own / "go.mod").write_text(self._requiring(own))
            run(
                [*build, "-o", f"{folder}/", *packages],
                env={**os.environ, **settings},
                cwd=own,
                timeout=COMPILE_TIMEOUT_S,
            )
            if also is not None:
                also(folder)
        except CommandFailed as error:
            sentence = f"{self.name} {self.version} can't be compiled: {error}"
            raise RequirementsMissing([sentence, *self.otherwise]) from error

    def _requiring(self, folder: Path) -> str:
        """A go.mod for the same Go as upstream's: with an older one, Go looks at far more."""
        words = ["go", "mod", "download", "-json", f"{self.module}@{self.version}"]
        told = json.loads(run(words, cwd=folder, timeout=COMPILE_TIMEOUT_S))
        upstream = json.loads(run(["go", "mod", "edit", "-json", told["GoMod"]], cwd=folder))
        required = f"require {self.module} {self.version}"
        return f"module programs.invalid/{self.name}\ngo {upstream['Go']}\n{required}\n"
