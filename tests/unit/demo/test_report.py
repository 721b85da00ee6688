"""The report: the contents of its tables, and that they stay in their columns."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html import escape, unescape
from pathlib import Path

import pytest

from emberflow.demo.observations import Delivery, Outcome
from emberflow.demo.report import elapsed, write_report
from emberflow.demo.run_facts import RunFacts
from emberflow.demo.triage import Escalation, Moods
from emberflow.plan.job_contract import JobMetrics
from emberflow.streams import StreamExecutionEnvironment

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
WIDTHS = (360, 700, 1000, 1400)

MEASURE = """
const found = [];
for (const frame of document.querySelectorAll("iframe")) {
  const page = frame.contentDocument, width = frame.clientWidth, wide = (item) => Math.round(item.scrollWidth);
  const cards = [...page.querySelectorAll(".card")].map((card) => [card, card.getBoundingClientRect()]);
  const name = (card) => card.querySelector("h2").textContent;
  for (const [card, box] of cards) {
    if (box.right > width) found.push(`${width}: ${name(card)} leaves the page`);
    for (const [other, its] of cards)
      if (card !== other && box.left < its.right && its.left < box.right && box.top < its.bottom && its.top < box.bottom)
        found.push(`${width}: ${name(card)} overlaps ${name(other)}`);
    for (const table of card.querySelectorAll("table"))
      if (wide(table) > table.parentElement.clientWidth && width > 500) found.push(`${width}: table of ${name(card)} is cut`);
  }
  if (!cards.length) found.push(`${width}: no cards`);
}
document.body.innerHTML = "<pre></pre>";
document.querySelector("pre").textContent = "FOUND " + JSON.stringify(found);
"""


@pytest.mark.parametrize(
    ("value", "shown"), [(-0.04, "0.0 s"), (-0.0, "0.0 s"), (0.04, "0.0 s"), (12.34, "12.3 s")]
)
def test_no_time_is_before_the_start(value: float, shown: str) -> None:
    assert elapsed(value) == shown


@pytest.fixture
def report(tmp_path: Path) -> Path:
    """Of a run whose processes disagree slightly about the time, with long texts in its tables."""
    complaint = "the handle came off while I was pouring tea for three guests, " * 3
    result = Outcome(
        deliveries=[Delivery(number / 100, number / 100 + 0.2) for number in range(200)],
        escalations=[
            Escalation(number, "electric kettle 0123", "replacements", complaint, ["damage", "delivery"] * 3, 960 + number)
            for number in range(20)
        ],
        moods=[Moods(mood, 0, 3) for mood in ("happy", "neutral", "unhappy")],
        calls=[(number / 100, number / 100 + 0.2) for number in range(200)],
        start_ms=1_000,
    )  # fmt: skip
    facts = RunFacts(
        engine="local",
        reviews=200,
        reviews_per_s=100,
        parallelism=2,
        start_up_s=-0.04,
        versions={"Python": "3.11.7", "emberflow": "1.2.3.dev4+g0123456"},
    )  # fmt: skip
    env = StreamExecutionEnvironment.get_execution_environment(engine="local")
    env.from_collection([1]).key_by(lambda value: value).sum().print()
    return write_report(tmp_path / "report.html", result, facts, env.job_graph(), JobMetrics(), -0.04)


def test_every_time_of_the_report_is_one(report: Path) -> None:
    cells = re.findall(r"<td[^>]*>(.*?)</td>", report.read_text())
    times = [cell for cell in cells if re.fullmatch(r"-?[\d.]+ s", cell)]
    assert len(times) == 22
    assert {time for time in times if time.startswith("-")} == set()


@pytest.mark.skipif(BROWSER is None, reason="C11: the layout of a page needs a browser")
def test_tables_stay_in_their_columns_at_every_width(report: Path, tmp_path: Path) -> None:
    frames = "".join(
        f'<iframe style="border:0;height:3000px;width:{width}px" srcdoc="{escape(report.read_text())}"></iframe>'
        for width in WIDTHS
    )
    page = tmp_path / "frames.html"
    page.write_text(f"<!doctype html><body>{frames}<script>onload = () => {{ {MEASURE} }}</script></body>")
    command = [str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]  # fmt: skip
    ended = subprocess.run(
        [*command, "--dump-dom", page.as_uri()], capture_output=True, text=True, check=False, timeout=300
    )
    found = re.search(r"FOUND (.*?)</pre>", ended.stdout)
    assert found is not None, ended.stdout[-2_000:] + ended.stderr[-2_000:]
    assert json.loads(unescape(found[1])) == []
