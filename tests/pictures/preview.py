"""Writes every page of the hosted checkout in every state into files.

python tests/pictures/preview.py FOLDER                 renders the pages, with the static files beside
python tests/pictures/preview.py FOLDER --shots SHOTS   also takes a picture of each at 375 and 1280 pixels, light and dark,
                                                     under the checkout's own content policy, and runs axe-core on each
"""

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

sys.path.append(str(Path(__file__).resolve().parents[1]))

from cuota.web.pages.render import CARD_WORDS
from support.pictures.page_samples import SAMPLES

PAGES = Path(__file__).resolve().parents[2] / "src" / "cuota" / "web" / "pages"
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'; connect-src 'self'"
)
CHROMIUM = "/usr/bin/chromium"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def render(folder: Path) -> None:
    """Write every sample and the static files into the folder."""
    templates = Environment(
        loader=FileSystemLoader(PAGES / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.globals |= {"autofocus": "autofocus", "card_words": CARD_WORDS}
    shutil.copytree(PAGES / "static", folder / "static", dirs_exist_ok=True)
    (folder / "static" / "brand.css").write_text(":root { --brand: #ff7a00 }\n")
    (folder / "static" / "logo.svg").write_text(
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 112 28"><rect width="112" height="28" rx="6" fill="#ff7a00"/></svg>'
    )
    for name, (template, context) in SAMPLES.items():
        (folder / f"{name}.html").write_text(templates.get_template(template).render(context))
    print(f"{len(SAMPLES)} pages in {folder}")


def look(address: str, shots: Path) -> int:
    """Take a picture of every page and check it. Return the number of problems."""
    from axe_playwright_python.sync_playwright import Axe
    from playwright.sync_api import Route, sync_playwright

    def with_policy(route: Route) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, headers={**answer.headers, "content-security-policy": POLICY})

    complaints: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        for scheme in ("light", "dark"):
            for width, height in ((375, 812), (1280, 800)):
                context = browser.new_context(
                    viewport={"width": width, "height": height}, color_scheme=scheme
                )
                context.route(f"{address}/**", with_policy)
                tab = context.new_page()
                tab.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
                for name in SAMPLES:
                    tab.goto(f"{address}/{name}.html")
                    tab.screenshot(path=shots / f"{name}-{width}-{scheme}.png", full_page=True)
                    if tab.evaluate("document.documentElement.scrollWidth > innerWidth"):
                        complaints.append(f"{name} at {width}: wider than the window")
                    found = Axe().run(tab).response
                    for kind in ("violations", "incomplete"):
                        for rule in found[kind]:
                            nodes = [node["html"] for node in rule["nodes"]]
                            complaints.append(
                                f"{name}-{width}-{scheme}: {kind}: {rule['id']}: {rule['help']}: {nodes}"
                            )
        browser.close()
    print("\n".join(complaints) or "axe-core, the content policy and the widths: no complaint")
    return len(complaints)


def main() -> int:
    """Run the program."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("folder", type=Path)
    asked.add_argument("--shots", type=Path, help="a folder for pictures")
    asked.add_argument("--port", type=int, default=8952)
    given = asked.parse_args()
    render(given.folder)
    if not given.shots:
        return 0
    given.shots.mkdir(parents=True, exist_ok=True)
    command = [
        sys.executable,
        "-m",
        "http.server",
        str(given.port),
        "--bind",
        "127.0.0.1",
        "--directory",
        str(given.folder),
    ]
    server = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        return 1 if look(f"http://127.0.0.1:{given.port}", given.shots) else 0
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    sys.exit(main())
