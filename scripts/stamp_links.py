"""Say where the course lives: `python scripts/stamp_links.py OWNER/REPO [--branch main]`, or `--remove`.

The address has one home, `[project.urls]` in pyproject.toml. With it go the line in CITATION.cff and the badges for Colab,
Binder and nbviewer under the title of the README and of every notebook. Until there is an address there is no badge: a link to
nowhere is worse than none. Stamping again replaces what was there; removing leaves the files as they were before.
"""

import argparse
import json
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
README_OPENS = "00_start_here"  # the notebook that the README's badges lead to
OPEN, CLOSE = "<!-- badges -->", "<!-- /badges -->"  # each alone on its line: Markdown beside a comment is not rendered
BLOCK = re.compile(rf"\n*{OPEN}.*?{CLOSE}", re.DOTALL)
SOURCE = re.compile(r'^SOURCE = "[^"\n]*"', re.MULTILINE)  # in a notebook's first cell of code: what Colab installs
URLS = re.compile(r'^\[project\.urls\]\nRepository = "[^"\n]*"\n\n', re.MULTILINE)
GITHUB = "https://github.com/"


class Problem(Exception):
    """Why nothing was changed, in one sentence."""


def badges(repository: str, branch: str, notebook: str) -> str:
    """One line of Markdown: three pictures, each a link that opens this notebook."""
    path = f"notebooks/{notebook}.ipynb"
    links = {
        "Open in Colab": (
            "https://colab.research.google.com/assets/colab-badge.svg",
            f"https://colab.research.google.com/github/{repository}/blob/{branch}/{path}",
        ),
        "Launch on Binder": (
            "https://mybinder.org/badge_logo.svg",
            f"https://mybinder.org/v2/gh/{repository}/{branch}?urlpath=lab/tree/{path}",
        ),
        "Read on nbviewer": (
            "https://raw.githubusercontent.com/jupyter/design/master/logos/Badges/nbviewer_badge.svg",
            f"https://nbviewer.org/github/{repository}/blob/{branch}/{path}",
        ),
    }
    return " ".join(f"[![{text}]({picture})]({link})" for text, (picture, link) in links.items())


def with_badges(text: str, line: str, name: str) -> str:
    """The page with this line of badges under its title, in place of an earlier one; with an empty line, without."""
    bare = BLOCK.sub("", text)
    if OPEN in bare or CLOSE in bare:
        raise Problem(f"{name} has one of the markers {OPEN} and {CLOSE} without the other; write or delete it by hand.")
    title = re.match(r"# .+", bare)
    if not title:
        raise Problem(f"{name} does not begin with a title (a line '# ...'), under which the badges belong.")
    return title.group() + (f"\n\n{OPEN}\n{line}\n{CLOSE}" if line else "") + bare[title.end() :]


def notebook_with_badges(text: str, line: str, name: str, source: str = "") -> str:
    """The same for a notebook's first page of text, and its first code says where the course can be had."""
    try:
        notebook = json.loads(text)
    except json.JSONDecodeError as error:
        raise Problem(f"{name} is not a notebook ({error}).") from error
    if _as_nbformat_writes(notebook) != text:
        raise Problem(
            f"{name} is not laid out as Jupyter saves it, so stamping would change all of it; save it in Jupyter first."
        )
    first = next(iter(notebook.get("cells", ())), {})
    if first.get("cell_type") != "markdown":
        raise Problem(f"{name} does not begin with a cell of text, in which the badges belong.")
    first["source"] = with_badges("".join(first["source"]), line, name).splitlines(keepends=True)
    code = next((cell for cell in notebook["cells"] if cell["cell_type"] == "code"), {"source": []})
    text, found = SOURCE.subn(f'SOURCE = "{source}"', "".join(code["source"]))
    if not found:
        raise Problem(f"{name} has no line SOURCE = ... in its first cell of code, where Colab learns what to install.")
    code["source"] = text.splitlines(keepends=True)
    return _as_nbformat_writes(notebook)


def _as_nbformat_writes(notebook: dict) -> str:
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def address(pyproject: str) -> str:
    """OWNER/REPO from the text of pyproject.toml; empty where there is none."""
    return tomllib.loads(pyproject)["project"].get("urls", {}).get("Repository", "").removeprefix(GITHUB)


def with_address(pyproject: str, repository: str) -> str:
    block = f'[project.urls]\nRepository = "{GITHUB}{repository}"\n\n' if repository else ""
    changed = URLS.sub("", pyproject).replace("[project.scripts]\n", f"{block}[project.scripts]\n", 1)
    try:
        agrees = address(changed) == repository
    except tomllib.TOMLDecodeError:
        agrees = False
    if not agrees:
        raise Problem("[project.urls] in pyproject.toml holds more than this script writes; edit it by hand.")
    return changed


def with_citation(citation: str, repository: str) -> str:
    bare = re.sub(r"^repository-code: .*\n", "", citation, flags=re.MULTILINE)
    return bare + (f"repository-code: {GITHUB}{repository}\n" if repository else "")


def check(repository: str, branch: str):
    owner = r"[A-Za-z0-9](?:-?[A-Za-z0-9]){0,38}"
    name = r"(?!\.{1,2}$)(?!.*\.git$)[\w.-]{1,100}"
    if repository and not re.fullmatch(f"{owner}/{name}", repository, re.ASCII):
        raise Problem(f"{repository!r} is not an address on GitHub; write OWNER/REPO, such as jupyter/notebook.")
    if not re.fullmatch(r"\w[\w.-]*", branch, re.ASCII):
        raise Problem(f"{branch!r} cannot be a branch in these links; use letters, digits, '.', '_' and '-', with no slash.")


def stamp(root: Path, repository: str, branch: str = "main") -> list[Path]:
    """Write address and badges into the files under `root`, or take both out when `repository` is empty; those changed.

    Every new text is made before the first file is written, so a Problem leaves all as it was.
    """
    check(repository, branch)
    pages = [root / "README.md", *sorted((root / "notebooks").glob("*.ipynb"))]
    old = {path: path.read_text(encoding="utf-8") for path in (root / "pyproject.toml", root / "CITATION.cff", *pages)}
    new = {root / "pyproject.toml": with_address(old[root / "pyproject.toml"], repository)}
    new[root / "CITATION.cff"] = with_citation(old[root / "CITATION.cff"], repository)
    for path in pages:
        is_notebook = path.suffix == ".ipynb"
        line = badges(repository, branch, path.stem if is_notebook else README_OPENS) if repository else ""
        name = path.relative_to(root).as_posix()
        source = f"{GITHUB}{repository}/archive/{branch}.zip" if repository else ""
        new[path] = notebook_with_badges(old[path], line, name, source) if is_notebook else with_badges(old[path], line, name)
    changed = [path for path in new if new[path] != old[path]]
    for path in changed:
        path.write_text(new[path], encoding="utf-8", newline="\n")
    return changed


def main(arguments: list[str] | None = None, root: Path = ROOT):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("repository", metavar="OWNER/REPO", nargs="?", help="the repository on GitHub; '' is --remove")
    parser.add_argument("--branch", default="main", help="the branch that the badges open (default: main)")
    parser.add_argument("--remove", action="store_true", help="take the address and every badge out again")
    given = parser.parse_args(arguments)
    if given.remove == (given.repository is not None):
        sys.exit("Name one of the two: OWNER/REPO, or --remove.")
    try:
        changed = stamp(root, given.repository or "", given.branch)
    except Problem as problem:
        sys.exit(f"Nothing was changed: {problem}")
    print("\n".join(path.relative_to(root).as_posix() for path in changed) or "Nothing to change.")


if __name__ == "__main__":
    main()
