"""The panels as a learner meets them: JupyterLab in a real browser, sliders moved by keyboard."""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import nbformat
import pytest

from tests.notebooks import FOLDER, MEASURE_ONCE

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
REQUIRED = os.environ.get("SHAPELAB_BROWSER") == "required"  # the gate sets it: there, nothing may be skipped
PICTURES = Path(__file__).resolve().parents[2] / "browser-pictures"
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
SETTINGS = {  # every output stays in the page, not only those in view
    "@jupyterlab/notebook-extension/tracker.jupyterlab-settings": '{"windowingMode": "none"}',
    "@jupyterlab/apputils-extension/notification.jupyterlab-settings": '{"fetchNews": "false", "checkForUpdates": false}',
}


def missing() -> str | None:
    if not CHROMIUM:
        return "there is no chromium here (Debian: apt-get install chromium)"
    try:
        import jupyterlab  # noqa: F401
        import playwright  # noqa: F401
    except ImportError as error:
        return f"{error.name} is not installed (pip install -e '.[course,test,browser]')"
    return None


pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(missing()) and not REQUIRED, reason=str(missing()))]


@pytest.fixture(scope="module")
def lab_address(tmp_path_factory):
    """JupyterLab in a folder with the course's notebooks, which measure once and without warm-up here."""
    folder = tmp_path_factory.mktemp("lab")
    for path in FOLDER.glob("*.ipynb"):
        notebook = nbformat.read(path, as_version=4)
        notebook.cells.insert(0, nbformat.v4.new_code_cell(MEASURE_ONCE))
        for cell in notebook.cells:
            if cell.cell_type == "code":
                cell.outputs, cell.execution_count = [], None
        nbformat.write(notebook, folder / path.name)
    for name, content in SETTINGS.items():
        (folder / "settings" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "settings" / name).write_text(content, encoding="utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", f"--port={port}", "--IdentityProvider.token=",
        "--LabApp.expose_app_in_browser=True", "--LabApp.extension_manager=readonly", f"--ServerApp.root_dir={folder}",
    ]  # fmt: skip
    environment = {
        **os.environ,
        "JUPYTERLAB_SETTINGS_DIR": str(folder / "settings"),
        "SHAPELAB_PREDICTIONS": str(folder / "p.json"),
    }
    with (folder / "server.log").open("w") as log:
        server = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=subprocess.STDOUT)
        try:
            _wait_for(f"http://127.0.0.1:{port}/api", server, folder / "server.log")
            yield f"http://127.0.0.1:{port}/lab"
        finally:
            server.terminate()
            server.wait(20)


def _wait_for(address: str, server, log: Path):
    for _ in range(120):
        try:
            urllib.request.urlopen(address, timeout=2).close()
            return
        except OSError:
            assert server.poll() is None, log.read_text()
            time.sleep(0.5)
    raise AssertionError(f"JupyterLab did not answer: {log.read_text()}")


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser):
    page = browser.new_page(viewport={"width": 1280, "height": 1000})
    page.console_errors = []
    page.on("console", lambda message: page.console_errors.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: page.console_errors.append(str(error)))
    yield page
    page.close()


IDLE = "() => document.querySelector('.jp-Notebook-ExecutionIndicator')?.dataset.status === 'idle'"

CONNECTED = "() => document.querySelector('.jp-Toolbar-kernelName')?.textContent.includes('(ipykernel)')"


def run_notebook(page, address: str, name: str):
    """Open a notebook, run all its cells, and wait until none runs any more."""
    page.goto(f"{address}/tree/{name}.ipynb?reset", wait_until="domcontentloaded")
    page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=60_000)
    page.wait_for_function(CONNECTED, timeout=90_000)  # asked to run before that, JupyterLab asks back which kernel to take
    page.wait_for_function(IDLE, timeout=90_000)
    still, quiet = 12, 0
    for _ in range(240):
        shown = [text.strip() for text in prompts(page)]
        done = all(text[1:-2].isdigit() for text in shown)
        quiet = quiet + 1 if done and page.evaluate(IDLE) else 0
        if quiet > 2:  # asked twice, a cell shows the number of its first run while the second is still to come
            return
        still = 0 if done or "[*]:" in shown else still + 1
        if still > 12:  # asked before the kernel is connected, JupyterLab forgets it: ask again
            page.evaluate("() => { window.jupyterapp.commands.execute('notebook:run-all-cells') }")
            still = 0
        page.wait_for_timeout(1000)
    raise AssertionError(f"not all cells ran: {prompts(page)}")


def prompts(page) -> list[str]:
    """What stands before each code cell: [ ]: not run, [*]: running, [7]: done."""
    return page.locator(".jp-CodeCell .jp-InputPrompt").all_inner_texts()


def panel_of(page):
    return page.locator(".widget-vbox", has=page.locator(".shapelab-text")).last


def press(page, panel, label: str, key: str):
    """Press a key on a slider, as somebody without a mouse would."""
    slider = (
        panel.locator(".widget-hslider, .jupyter-widgets", has=page.get_by_text(label, exact=True)).locator(".noUi-handle").first
    )
    slider.focus()
    page.keyboard.press(key)


def wait_for_change(page, panel, before: str) -> str:
    for _ in range(100):
        text = panel.locator(".shapelab-text").inner_text()
        if text != before:
            return text
        page.wait_for_timeout(100)
    raise AssertionError("the text did not follow the slider")


@pytest.mark.parametrize(
    "name,label",
    [
        ("01_three_request_shapes", "output tokens"),
        ("05_batch_size", "USD an hour"),
        ("06_kv_cache", "prompt tokens"),
        ("07_cost", "requests a day"),
    ],
)
def test_a_panel_follows_the_keyboard(page, lab_address, name, label):
    run_notebook(page, lab_address, name)
    panel = panel_of(page)
    panel.scroll_into_view_if_needed()
    picture = panel.locator("img")
    assert picture.count() == 1
    source, text, table = picture.get_attribute("src"), panel.locator(".shapelab-text").inner_text(), panel.inner_text()
    moved = False
    for move in range(10):
        press(page, panel, label, "ArrowRight" if move % 2 == 0 else "ArrowLeft")
        page.wait_for_timeout(250)
        now = panel.inner_text()
        moved = moved or now != table
    press(page, panel, label, "ArrowLeft")
    page.wait_for_timeout(800)
    assert moved and panel.inner_text() != table
    assert picture.count() == 1, "exactly one picture after ten moves"
    if name != "05_batch_size":  # a price changes the table there, not the picture
        assert panel.locator(".shapelab-text").inner_text() != text and picture.get_attribute("src") != source
    PICTURES.mkdir(exist_ok=True)
    page.screenshot(path=PICTURES / f"{name}.png")
    ours = [
        error for error in page.console_errors if "widget" in error.lower() or "shapelab" in error.lower() or "Uncaught" in error
    ]
    assert ours == [], page.console_errors
    if name == "01_three_request_shapes":
        says_what_cannot_be(page, panel)
    if name == "05_batch_size":
        a_curve_is_sketched_and_committed(page)


def says_what_cannot_be(page, panel):
    """A GPU with TinyLlama, whose context of 2,048 tokens is too short for the longest prompt."""
    panel.locator("select").first.select_option("T4")
    press(page, panel, "input tokens", "End")
    panel.locator(".shapelab-error [role=alert]").wait_for(timeout=10_000)
    assert "context" in panel.locator(".shapelab-error").inner_text()
    press(page, panel, "input tokens", "Home")
    page.wait_for_timeout(800)
    assert panel.locator(".shapelab-error [role=alert]").count() == 0 and panel.locator("img").count() == 1


def a_curve_is_sketched_and_committed(page):
    """Sliders by keyboard; the words under the sketch follow, and the prediction stands beside the button."""
    sketch = page.locator(".widget-vbox", has=page.get_by_text("Sketch each reader's wait")).last
    sketch.scroll_into_view_if_needed()
    before = sketch.inner_text()
    press(page, sketch, "batch size 16", "End")
    page.wait_for_timeout(800)
    assert sketch.inner_text() != before and "16 at 16" in sketch.inner_text() and sketch.locator("img").count() == 1
    sketch.get_by_role("button", name="Commit").press("Enter")
    sketch.get_by_text("Committed: 1 at 1").wait_for(timeout=10_000)
    page.screenshot(path=PICTURES / "05_sketch.png")
