#!/usr/bin/env python3
"""Draws the sweeps of docs/published.md from committed result files: scripts/sweep_pictures.py [FOLDER], by default docs/images.

Needs the Python package, plotly and Chromium. The plots are those of section Sweeps of `tmaops report`.
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile

from tmaops.pages.page import Page, write_page
from tmaops.pages.report import read
from tmaops.pages.sweeps import sweep_plot, sweeps

ROOT = pathlib.Path(__file__).resolve().parents[1]
PICTURES = {  # file of results/, what is swept and held, measure
    "tile_load_queries": ("h100/seed_tile_load_sweep.json", "loads", "", "loads per second"),
    "ms_deform_attn_images": ("h100/seed_ms_deform_attn_sweep.json", "images", "19560", "time, microseconds"),
    "ms_deform_attn_pixels": (
        "h100/seed_ms_deform_attn_sweep.json",
        "pixels of all levels",
        "N48",
        "time, microseconds",
    ),
}


def draw(browser, target, source, over, held, measure):
    run = read(ROOT / "results" / source)
    [sweep] = [sweep for sweep in sweeps(run.rows) if sweep.over == over and held in sweep.fixed]
    plot = sweep_plot(sweep.fixed, sweep, measure)
    with tempfile.TemporaryDirectory() as folder:
        page, path = Page(f"{measure} over {over}"), pathlib.Path(folder) / "plot.html"
        page.plot(("", "", plot))
        write_page(page, path)
        shot = [
            browser,
            "--headless",
            "--no-sandbox",
            "--hide-scrollbars",
            "--window-size=1200,640",
            f"--screenshot={target}",
        ]
        subprocess.run([*shot, path.as_uri()], check=True, stderr=subprocess.DEVNULL)


def main():
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        raise SystemExit("sweep_pictures: no Chromium: apt-get install chromium")
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "images"
    for name, picture in PICTURES.items():
        draw(browser, folder.resolve() / f"{name}.png", *picture)


if __name__ == "__main__":
    main()
