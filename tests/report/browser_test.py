#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The report in headless Chromium, at the widths of a phone and of a desktop, and printed."""

import base64
import os
import re
import sys
import tempfile
import unittest
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

SOURCE = Path(os.environ["PERDURE_SOURCE"])
sys.path[:0] = [str(SOURCE / "bench"), str(SOURCE / "papers"), str(SOURCE / "tests" / "support")]

from figures import kept, report  # noqa: E402
from figures.figure import has_points  # noqa: E402
from figures.papers import PAPERS  # noqa: E402
from limits import LimitedCase, limited  # noqa: E402

LEGIBLE = 8.5  # CSS pixels
SMALLEST = """const texts = [...document.querySelectorAll('.picture svg text')];
return texts.filter(t => t.textContent.trim()).map(t => {
  const m = t.getScreenCTM();
  return [parseFloat(getComputedStyle(t).fontSize) * Math.hypot(m.a, m.b), t.closest('article').id];
}).sort((a, b) => a[0] - b[0])[0]"""
# Letters that extend beyond their picture.
CUT = """return [...document.querySelectorAll('.picture svg text')].filter(t => {
  const own = t.getBoundingClientRect(), frame = t.closest('svg').getBoundingClientRect();
  return own.width && (own.left < frame.left - 2 || own.right > frame.right + 2 ||
                       own.top < frame.top - 2 || own.bottom > frame.bottom + 2);
}).map(t => t.closest('article').id + ': ' + t.textContent)"""


def without_pictures(page):
    return re.sub(r"<svg.*?</svg>", "<svg>", page, flags=re.S)


class Report(LimitedCase):
    @classmethod
    def setUpClass(cls):
        cls.documents = {
            paper.name: kept.load(SOURCE / "papers", paper) for paper in PAPERS.values()
        }
        cls.scratch = tempfile.TemporaryDirectory(prefix="perdure-report-")
        with limited("set-up of the report and the browser", cls.case_limit):
            cls.set_up_browser()

    @classmethod
    def set_up_browser(cls):
        cls.page = report.write_report(PAPERS.values(), cls.documents, Path(cls.scratch.name))
        options = Options()
        for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                     "--hide-scrollbars", f"--user-data-dir={cls.scratch.name}/profile"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        cls.browser = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)

    @classmethod
    def tearDownClass(cls):
        cls.browser.quit()
        cls.scratch.cleanup()

    def opened(self, width):
        self.browser.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600})
        self.browser.get(self.page.as_uri())
        return self.browser.execute_script

    def test_what_lies_in_papers_is_made_of_what_is_kept(self):
        """Else: ./dev figures --pages. Pictures are left out: their letters' places follow the
        fonts of the machine."""
        self.assertEqual(
            without_pictures((SOURCE / "papers" / "report" / "index.html").read_text()),
            without_pictures(self.page.read_text()))

    def test_at_both_widths(self):
        for width in (400, 1400):
            with self.subTest(width=width):
                ask = self.opened(width)
                self.assertLessEqual(ask("return document.documentElement.scrollWidth"), width,
                                     "the page is wider than the window")
                size, row = ask(SMALLEST)
                self.assertGreaterEqual(size, LEGIBLE, f"letters of {row}")
                self.assertEqual([], ask(CUT))
                self.assertEqual(
                    [],
                    ask("return [...document.querySelectorAll('.picture > svg')].filter(s => "
                        "s.getBoundingClientRect().height < 60).map(s => s.closest('article').id)"))
                self.assertEqual([], self.browser.get_log("browser"), "the console")

    def test_every_figure_stands_there_with_its_verdict(self):
        ask = self.opened(1400)
        rows = {figure.row for paper in PAPERS.values() for figure in paper.figures}
        found = dict(
            ask("return [...document.querySelectorAll('article.figure')].map(a => [a.id, "
                "a.querySelector('.verdict').textContent])"))
        self.assertEqual(rows, set(found))
        self.assertTrue(
            all(
                any(word in text for word in ("reproduced", "differs", "not decided",
                                              "can't be run here", "ours", "not measured"))
                for text in found.values()), found)
        pictures = set(
            ask("return [...document.querySelectorAll('.picture > svg')].map(s => "
                "s.closest('article').id)"))
        self.assertEqual(
            {
                row for own in self.documents.values()
                for row, document in own.items() if has_points(document)
            }, pictures)
        self.assertEqual(
            [],
            ask("return [...document.querySelectorAll('a[href^=\"#\"]')].map(a => "
                "a.hash.slice(1)).filter(id => !document.getElementById(id))"))
        ids = ask("return [...document.querySelectorAll('[id]')].map(e => e.id)")
        self.assertEqual(len(ids), len(set(ids)), "an id is there twice")
        self.assertEqual(
            [],
            ask("return [...document.querySelectorAll('.picture > svg')].filter(s => "
                "!s.getAttribute('aria-labelledby')).length ? ['no label'] : []"))

    def test_prints(self):
        self.opened(1400)
        done = self.browser.execute_cdp_cmd("Page.printToPDF",
                                            {"paperWidth": 8.27, "paperHeight": 11.69})
        pdf = base64.b64decode(done["data"])
        self.assertTrue(pdf.startswith(b"%PDF"))
        self.assertGreater(len(re.findall(rb"/Type\s*/Page\b", pdf)), 10)


if __name__ == "__main__":
    unittest.main(verbosity=2)
