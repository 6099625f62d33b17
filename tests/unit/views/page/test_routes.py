import base64
import hashlib
import re
from pathlib import Path

from hami_mock.views.page import routes
from hami_mock.views.page.routes import content_security_policy, page

FILE = Path(routes.__file__).with_name("page.html").read_text()


def directives() -> dict[str, str]:
    policy = page().headers["Content-Security-Policy"]
    return dict(part.partition(" ")[::2] for part in policy.split("; "))


def test_the_page_may_load_nothing_but_itself() -> None:
    found = directives()
    assert found["default-src"] == "'none'"
    assert found["connect-src"] == "'self'"
    assert found["img-src"] == "data:"
    assert {found[name] for name in ("base-uri", "form-action", "frame-ancestors")} == {"'none'"}
    assert "unsafe" not in str(found)


def test_the_policy_allows_the_very_script_and_style_of_the_page() -> None:
    for tag in ("script", "style"):
        (text,) = re.findall(f"<{tag}>(.*?)</{tag}>", FILE, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert directives()[f"{tag}-src"] == f"'sha256-{digest}'"


def test_another_script_is_not_allowed() -> None:
    other = FILE.replace('"use strict";', '"use strict"; steal();')
    assert content_security_policy(other.encode()) != page().headers["Content-Security-Policy"]


def test_text_never_becomes_markup() -> None:
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", FILE)
    assert not re.search(r"<[^>]+\son\w+=", FILE)
    assert not re.search(r"<[^>]+\sstyle=", FILE)


def test_the_page_names_no_other_place() -> None:
    # The one that all drawings carry is a name, not an address.
    places = set(re.findall(r"https?://[^\s'\"]+", FILE))
    assert places == {"http://www.w3.org/2000/svg"}


def test_the_page_can_be_walked_through_without_eyes_or_a_mouse() -> None:
    assert '<html lang="en">' in FILE
    for landmark in ("<header", "<main", "<aside", 'class="skip" href="#cards"'):
        assert landmark in FILE
    assert 'role="log" aria-live="polite"' in FILE
    assert 'role="status"' in FILE
    assert ":focus-visible" in FILE
    assert "prefers-reduced-motion" in FILE
    assert "prefers-color-scheme: dark" in FILE


def test_the_page_has_no_form_and_its_one_button_only_pauses_it() -> None:
    assert re.findall(r"<button id=\"(\w+)\"", FILE) == ["pause"]
    assert not re.search(r"<form|<input|fetch\(|XMLHttpRequest|sendBeacon", FILE)
