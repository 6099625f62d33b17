"""Write src/hami_mock/kubelet/_proto from protos/, or with --check say whether it is up to date."""

import filecmp
import os
import shutil
import sys
import tempfile
from pathlib import Path

from grpc_tools import protoc

TARGET = Path("src/hami_mock/kubelet/_proto")


def generate(folder: Path) -> None:
    """Run the compiler into a folder. Exits with its code if it fails."""
    # protoc looks for its plugin, and the plugin for ruff, on the path.
    os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    code = protoc.main(
        [
            "protoc",
            "--proto_path=protos",
            f"--python_betterproto2_out={folder}",
            "--python_betterproto2_opt=client_generation=async,server_generation=async",
            *map(str, sorted(Path("protos").glob("*.proto"))),
        ]
    )
    if code:
        sys.exit(code)


def main() -> None:
    """Generate and compare, or generate and replace."""
    with tempfile.TemporaryDirectory() as name:
        fresh = Path(name)
        generate(fresh)
        files = sorted(path.relative_to(fresh) for path in fresh.rglob("*.py"))
        if "--check" not in sys.argv:
            shutil.rmtree(TARGET, ignore_errors=True)
            shutil.copytree(fresh, TARGET)
            TARGET.chmod(0o755)  # a temporary folder is its owner's alone
            return
        stale = [
            file
            for file in files
            if not (TARGET / file).exists()
            or not filecmp.cmp(fresh / file, TARGET / file, shallow=False)
        ]
        if stale:
            sys.exit(f"{TARGET} is not what protos/ makes: run `make proto` ({stale[0]} differs)")


main()
