"""What the demo's customers write, and the scripted model that reads it. Both depend only on their input."""

from __future__ import annotations

import json
import random
import time
from typing import NamedTuple

from emberflow.agents import ChatMessage
from emberflow.testing import Reply

KINDS = ("kettle", "headset", "desk lamp", "backpack", "yoga mat", "grinder")
PRODUCTS = 1_200
CALL_MS = (100, 300)

# The text of a review, how satisfied its author is, what the complaint is about; how often it occurs.
_TEXTS: tuple[tuple[str, int, str, int], ...] = (
    ("I use the {} every day and love it.", 5, "", 30),
    ("Best {} I have owned at this price.", 5, "", 20),
    ("A good {}, does what it says.", 4, "", 40),
    ("The {} is okay, nothing special.", 3, "", 20),
    ("Delivery took three weeks, the {} itself is fine.", 3, "delivery", 10),
    ("My {} stopped working after nine days.", 2, "quality", 8),
    ("The {} smells of glue, even after a week.", 2, "smell", 4),
    ("The {} arrived broken, the box was crushed.", 1, "damage", 5),
    ("I want my money back for this {}.", 1, "price", 3),
)
_WEIGHTS = [weight for *_, weight in _TEXTS]


class Review(NamedTuple):
    number: int
    product: str
    text: str
    written_ms: int
    """Event time."""
    made_ms: int
    """Wall clock when the source created it; only for measurements."""


class ReviewGenerator:
    """Review number n is the same each time, except for the time it is created."""

    def __init__(self, start_ms: int, reviews_per_s: float) -> None:
        self._start_ms = start_ms
        self._reviews_per_s = reviews_per_s

    def __call__(self, number: int) -> Review:
        dice = random.Random(number)
        kind, model = dice.choice(KINDS), dice.randrange(PRODUCTS // len(KINDS))
        text = dice.choices(_TEXTS, _WEIGHTS)[0][0].format(kind)
        # Reviews arrive a little out of order.
        written_ms = self._start_ms + int(number * 1000 / self._reviews_per_s) - dice.randint(0, 400)
        return Review(number, f"{kind} {model:03}", text, written_ms, int(time.time() * 1000))


def answer(messages: list[ChatMessage]) -> Reply:
    """The model's reply to a review, as JSON, after a realistic delay."""
    review = messages[-1].content
    stars, complaint = next(
        ((stars, complaint) for text, stars, complaint, _ in _TEXTS if _fits(review, text)), (3, "")
    )
    # Derived from the whole request: the same request takes the same time when it is repeated.
    delay_ms = random.Random(" ".join(map(str, messages))).uniform(*CALL_MS)
    return Reply(json.dumps({"satisfaction": stars, "complaint": complaint}), delay_s=delay_ms / 1000)


def _fits(review: str, text: str) -> bool:
    before, after = text.split("{}")
    return review.startswith(before) and review.endswith(after)
