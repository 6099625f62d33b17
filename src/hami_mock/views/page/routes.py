"""The page's own file, with headers that let it load nothing else."""

import base64
import hashlib
import re
from functools import cache
from pathlib import Path

from hami_mock.views.http.messages import Answer, Routes
from hami_mock.views.page.feed import Feed

_PAGE = Path(__file__).with_name("page.html")


def page_routes(feed: Feed) -> Routes:
    return {"/": page, "/events": feed.stream}


@cache
def page(file: Path = _PAGE) -> Answer:
    """Return a page that is one file."""
    html = file.read_bytes()
    headers = {
        "Content-Security-Policy": content_security_policy(html),
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cache-Control": "no-store",
    }
    return Answer(html, content_type="text/html; charset=utf-8", headers=headers)


def content_security_policy(html: bytes) -> str:
    """Allow the script and the style that stand in the page, and the agent's own events."""
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {_hash_of(b'script', html)}",
            f"style-src {_hash_of(b'style', html)}",
            "connect-src 'self'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        )
    )


def _hash_of(tag: bytes, html: bytes) -> str:
    (text,) = re.findall(b"<%b>(.*?)</%b>" % (tag, tag), html, re.DOTALL)
    return f"'sha256-{base64.b64encode(hashlib.sha256(text).digest()).decode()}'"
