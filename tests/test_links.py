"""Every link leads somewhere, and the badges of README and notebooks agree with the one address in pyproject.toml."""

import importlib.util
import json
import re
import shutil
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("data/*.md"), *ROOT.glob("benchmarks/*.md"), *ROOT.glob("notebooks/*.ipynb")])
BADGE_LINK = re.compile(r"\]\((https://(?:colab\.research\.google\.com|mybinder\.org/v2|nbviewer\.org)/[^)]+)\)")
HERE = [
    "https://colab.research.google.com/github/{repository}/blob/{branch}/notebooks/{name}.ipynb",
    "https://mybinder.org/v2/gh/{repository}/{branch}?urlpath=lab/tree/notebooks/{name}.ipynb",
    "https://nbviewer.org/github/{repository}/blob/{branch}/notebooks/{name}.ipynb",
]

_spec = importlib.util.spec_from_file_location("stamp_links", ROOT / "scripts" / "stamp_links.py")
stamp_links = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(stamp_links)


def text_of(path: Path) -> str:
    """A page's Markdown: the file, or a notebook's cells of text."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".ipynb":
        return text
    return "\n\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown")


def badge_links(path: Path) -> list[str]:
    return [link for link in BADGE_LINK.findall(text_of(path)) if not link.endswith(".svg")]


def source_line(path: Path) -> str:
    """Where a notebook's first cell of code finds the course."""
    first = next(cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code")
    return next(line for line in "".join(first["source"]).splitlines() if line.startswith("SOURCE")).split("  #")[0]


def badge_pages(root: Path) -> list[Path]:
    return [root / "README.md", *sorted((root / "notebooks").glob("*.ipynb"))]


def citation(root: Path) -> dict:
    return yaml.safe_load((root / "CITATION.cff").read_text(encoding="utf-8"))


def expected(path: Path, repository: str, branch: str = "main") -> list[str]:
    name = path.stem if path.suffix == ".ipynb" else "00_start_here"
    return [link.format(repository=repository, branch=branch, name=name) for link in HERE]


@pytest.fixture
def copy(tmp_path):
    """The files that are stamped, as they are before any address is known."""
    shutil.copytree(ROOT / "notebooks", tmp_path / "notebooks")
    for name in ("README.md", "pyproject.toml", "CITATION.cff"):
        shutil.copy(ROOT / name, tmp_path / name)
    stamp_links.stamp(tmp_path, "")
    return tmp_path


def contents(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_stamping_writes_one_address_everywhere_and_again_replaces_it(copy):
    assert len(badge_pages(copy)) > 3
    for repository, branch in (("someone/shapelab", "main"), ("Some-One/shape.lab_2", "v1.0")):
        stamp_links.main([repository, "--branch", branch], copy)
        project = tomllib.loads((copy / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        assert project["urls"] == {"Repository": f"https://github.com/{repository}"}
        assert project["scripts"], "the table after it is still one"
        assert citation(copy)["repository-code"] == project["urls"]["Repository"]
        for path in badge_pages(copy):
            assert badge_links(path) == expected(path, repository, branch), path.name
            assert text_of(path).count("<!-- badges -->") == 1
        sources = {source_line(path) for path in sorted((copy / "notebooks").glob("*.ipynb"))}
        assert sources == {f'SOURCE = "https://github.com/{repository}/archive/{branch}.zip"'}


def test_stamping_twice_changes_nothing_the_second_time(copy):
    assert stamp_links.stamp(copy, "someone/shapelab")
    stamped = contents(copy)
    assert stamp_links.stamp(copy, "someone/shapelab") == [] and contents(copy) == stamped


@pytest.mark.parametrize("remove", [["--remove"], [""]])
def test_removing_leaves_every_file_byte_for_byte_as_it_was(copy, remove):
    before = contents(copy)
    stamp_links.main(["someone/shapelab"], copy)
    stamped = contents(copy)
    assert all(stamped[name] != before[name] for name in before)
    stamp_links.main(remove, copy)
    assert contents(copy) == before


def test_a_stamped_notebook_is_laid_out_as_jupyter_saves_it(copy):
    import nbformat

    stamp_links.stamp(copy, "someone/shapelab")
    for path in copy.glob("notebooks/*.ipynb"):
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
        assert nbformat.writes(notebook) + "\n" == path.read_text(encoding="utf-8")


def test_empty_markers_are_filled_wherever_they_stand_and_the_badges_go_under_the_title():
    page = "# A title\nText.\n\n<!-- badges --><!-- /badges -->\n"
    assert stamp_links.with_badges(page, "BADGES", "a page") == (
        "# A title\n\n<!-- badges -->\nBADGES\n<!-- /badges -->\nText.\n"
    )


def test_the_badges_are_shown_and_their_markers_are_not():
    """By the Markdown of CommonMark (GitHub) and by nbconvert's, which nbviewer shows."""
    from markdown_it import MarkdownIt
    from nbconvert.filters import markdown2html

    page = stamp_links.with_badges("# Title\n\nText.\n", stamp_links.badges("a/b", "main", "00_start_here"), "a page")
    for html in (MarkdownIt("commonmark").render(page), markdown2html(page)):
        assert html.count("<img") == html.count("<a href") == 3
        shown = re.sub(r"<!--.*?-->|<[^>]+>|&#182;", "", html, flags=re.DOTALL)
        assert shown.split() == ["Title", "Text."]


@pytest.mark.parametrize(
    "wrong, says",
    [
        (["someone"], "'someone' is not an address on GitHub; write OWNER/REPO"),
        (["https://github.com/someone/shapelab"], "is not an address on GitHub"),
        (["someone/shapelab.git"], "is not an address on GitHub"),
        (["someone-/shapelab"], "is not an address on GitHub"),
        (["some one/shapelab"], "is not an address on GitHub"),
        (["someone/.."], "is not an address on GitHub"),
        (["someone/a)b"], "is not an address on GitHub"),
        (["someone/shapelab", "--branch", "fix/it"], "'fix/it' cannot be a branch in these links"),
        ([], "Name one of the two"),
        (["someone/shapelab", "--remove"], "Name one of the two"),
    ],
)
def test_a_wrong_address_is_one_sentence_and_nothing_changes(copy, wrong, says):
    before = contents(copy)
    with pytest.raises(SystemExit, match=says) as stopped:
        stamp_links.main(wrong, copy)
    assert "\n" not in stopped.value.code
    assert contents(copy) == before


@pytest.mark.parametrize(
    "name, change, says",
    [
        (
            "notebooks/07_cost.ipynb",
            lambda text: text.replace("\n ", "\n  "),
            "07_cost.ipynb is not laid out as Jupyter saves it",
        ),
        ("notebooks/07_cost.ipynb", lambda text: text.replace('"# Cost', '"Cost'), "07_cost.ipynb does not begin with a title"),
        ("notebooks/07_cost.ipynb", lambda text: text[:99], "07_cost.ipynb is not a notebook"),
        ("notebooks/07_cost.ipynb", lambda text: text.replace("SOURCE =", "HOME ="), "07_cost.ipynb has no line SOURCE"),
        ("notebooks/07_cost.ipynb", lambda text: '{\n "cells": []\n}\n', "07_cost.ipynb does not begin with a cell of text"),
        ("README.md", lambda text: text + "<!-- badges -->\n", "README.md has one of the markers"),
        ("README.md", lambda text: "\n" + text, "README.md does not begin with a title"),
        (
            "pyproject.toml",
            lambda text: text + '\n[project.urls]\nHomepage = "https://example.org"\n',
            "holds more than this script",
        ),
    ],
)
def test_a_file_that_cannot_be_stamped_stops_all_of_it(copy, name, change, says):
    text = (copy / name).read_text(encoding="utf-8")
    assert change(text) != text
    (copy / name).write_text(change(text), encoding="utf-8")
    before = contents(copy)
    with pytest.raises(SystemExit, match=says):
        stamp_links.main(["someone/shapelab"], copy)
    assert contents(copy) == before


def test_the_committed_badges_agree_with_the_address():
    repository = stamp_links.address((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    found = {path: badge_links(path) for path in badge_pages(ROOT)}
    branch = next(iter(re.findall(r"/blob/([^/]+)/", " ".join(found[ROOT / "README.md"]))), "main")
    assert found == {path: expected(path, repository, branch) if repository else [] for path in found}, (
        "run scripts/stamp_links.py OWNER/REPO, or --remove"
    )
    branches = f"https://github.com/{repository}/archive/{branch}.zip" if repository else ""
    assert {source_line(path) for path in found if path.suffix == ".ipynb"} == {f'SOURCE = "{branches}"'}
    assert citation(ROOT).get("repository-code", "").removeprefix("https://github.com/") == repository


def test_the_citation_is_of_this_version_and_licence_and_names_no_person():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    cited = citation(ROOT)
    assert (cited["cff-version"], cited["type"], cited["authors"]) == ("1.2.0", "software", [{"name": "The shapelab authors"}])
    assert (str(cited["version"]), cited["license"]) == (project["version"], project["license"])
    assert cited["title"].startswith(f"{project['name']}: ") and cited["message"]


def test_the_changelog_begins_with_this_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert newest.group(1) == project["version"]


def slugs(path: Path) -> set[str]:
    """What a link may write after '#': GitHub's names for the headings of a page; in a notebook those of Jupyter."""
    text = re.sub(r"^```.*?^```", "", text_of(path), flags=re.DOTALL | re.MULTILINE)
    found = set()
    for heading in re.findall(r"^#+ +(.+?) *#*$", text, re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        slug = plain.replace(" ", "-") if path.suffix == ".ipynb" else re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        number = next(n for n in range(99) if (f"{slug}-{n}" if n else slug) not in found)
        found.add(f"{slug}-{number}" if number else slug)
    return found


def broken_links(path: Path, root: Path) -> list[str]:
    """Relative links of a page that lead to no file under `root`, or to a heading that its page has not."""
    text = re.sub(r"^```.*?^```", "", text_of(path), flags=re.DOTALL | re.MULTILINE)
    wrong = []
    for link in re.findall(r"\]\(<?([^)\s>]+)", text):
        if re.match(r"[a-z]+:", link):
            continue
        file, _, anchor = link.partition("#")
        target = (path.parent / file).resolve() if file else path
        if not target.exists() or not target.is_relative_to(root) or (anchor and anchor not in slugs(target)):
            wrong.append(link)
    return wrong


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_relative_link_leads_to_a_file_and_a_heading(path):
    assert broken_links(path, ROOT) == []


def test_a_broken_link_is_noticed(tmp_path):
    (tmp_path / "there.md").write_text("# One & two\n## One\n## One\n```\n# no heading\n```\n", encoding="utf-8")
    page = tmp_path / "page.md"
    right = ["there.md", "there.md#one--two", "there.md#one-1", "https://example.org/x", "mailto:a@b", "#here-it-is"]
    wrong = ["gone.md", "there.md#three", "there.md#no-heading", "#there", "../outside.md", "there.md#one-2"]
    (tmp_path.parent / "outside.md").touch()
    page.write_text("# Here it is\n" + " ".join(f"[text]({link})" for link in right + wrong), encoding="utf-8")
    assert broken_links(page, tmp_path) == wrong


def test_where_do_i_change_names_files_that_exist():
    section = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("## Where do I change")[1].split("\n## ")[0]
    names = re.findall(r"`([\w./]+)`", "".join(re.findall(r"(?m)^\| .+$", section)))
    assert len(names) > 20
    missing = [name for name in names if not any((folder / name).exists() for folder in (ROOT, ROOT / "shapelab"))]
    assert missing == []
