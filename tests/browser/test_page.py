"""The page in Chromium: keyboard, narrow screens, light and dark, contrast, hostile names."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest

from rowlake.model.names import quoted
from tests.browser.sample_lake import HOSTILE

TABS = ["", "/history", "/files", "/schema", "/changes", "/optimize"]
PATHS = ["/", "/activity"]
PATHS += [f"/table{tab}?name=shop.orders" for tab in TABS]
PATHS += [f"/table{tab}?name=events.sessions" for tab in TABS]
PATHS += ["/table/files?name=events.clicks", "/table/optimize?name=events.clicks"]
PATHS += [f"/table{tab}?{urlencode({'name': quoted(HOSTILE)})}" for tab in TABS]

# What text is hard to read on what it stands on: WCAG 2 level AA.
CONTRAST = """() => {
  const rgb = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
  const over = (front, back) => {
    const alpha = front.length > 3 ? front[3] : 1;
    return [0, 1, 2].map((i) => front[i] * alpha + back[i] * (1 - alpha));
  };
  const ground = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) {
      layers.unshift(rgb(getComputedStyle(at).backgroundColor));
    }
    return layers.reduce((back, front) => over(front, back), [255, 255, 255]);
  };
  const light = (colour) => {
    const [r, g, b] = colour.map((part) => {
      const share = part / 255;
      return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const poor = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    const text = walker.currentNode.textContent.trim();
    if (!text || element.closest("svg, .unseen, .skip, option")) continue;
    if (!element.checkVisibility()) continue;
    const style = getComputedStyle(element);
    const back = ground(element);
    const [one, other] = [light(over(rgb(style.color), back)), light(back)];
    const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    if (ratio < (large ? 3 : 4.5)) poor.push(`${text.slice(0, 30)}: ${ratio.toFixed(2)}`);
  }
  return poor;
}"""
SIDEWAYS = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
FOCUSED = "() => document.activeElement.outerHTML.slice(0, 80)"


def test_the_token_leaves_the_address_and_the_cookie_is_out_of_reach(visit) -> None:
    made = visit()
    assert "token" not in made.page.url
    assert made.page.evaluate("() => document.cookie") == ""
    (cookie,) = made.page.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_all_text_can_be_read(visit, dark: bool) -> None:
    made = visit(dark=dark, actions=True)
    poor = {}
    for path in [*PATHS, "/action?name=shop.orders&verb=optimize", "/nowhere"]:
        if path == "/nowhere":
            made.troubles.clear()
        made.open(path)
        poor[path] = made.page.evaluate(CONTRAST)
    assert {path: found for path, found in poor.items() if found} == {}
    assert made.troubles.pop().startswith("console error: Failed to load resource")  # the 404


def test_light_and_dark_follow_the_system(visit) -> None:
    colour = "() => getComputedStyle(document.body).backgroundColor"
    light, dark = (visit(dark=dark).page.evaluate(colour) for dark in (False, True))
    assert light != dark


def test_nothing_is_wider_than_a_narrow_screen(visit) -> None:
    made = visit(narrow=True)
    wide = {}
    for path in PATHS:
        made.open(path)
        wide[path] = made.page.evaluate(SIDEWAYS)
    assert {path: by for path, by in wide.items() if by > 0} == {}


def test_the_keyboard_is_enough(visit) -> None:
    made = visit()
    page = made.page
    page.keyboard.press("Tab")
    assert "Skip to content" in page.evaluate(FOCUSED)
    page.keyboard.press("Enter")
    assert 'id="content"' in page.evaluate(FOCUSED)
    page.keyboard.press("/")
    page.keyboard.type("customers")
    assert page.locator("#tables tr:visible").count() == 1
    page.keyboard.press("Tab")
    assert "shop.customers" in page.evaluate(FOCUSED)
    outline = "() => getComputedStyle(document.activeElement).outlineStyle"
    assert page.evaluate(outline) != "none"
    page.keyboard.press("Enter")
    page.wait_for_url("**/table?name=shop.customers")
    page.get_by_role("link", name="Schema").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/table/schema?**")
    assert page.locator("nav.tabs [aria-current=page]").inner_text() == "Schema"


def test_escape_clears_the_filter(visit) -> None:
    page = visit().page
    everything = page.locator("#tables tr:visible").count()
    page.get_by_placeholder("Filter tables").fill("sessions")
    assert page.locator("#tables tr:visible").count() == 1
    page.keyboard.press("Escape")
    assert page.locator("#tables tr:visible").count() == everything


def test_hostile_names_are_shown_as_text(visit) -> None:
    made = visit()
    name = quoted(HOSTILE)
    for path in ["/", *(f"/table{tab}?{urlencode({'name': name})}" for tab in TABS)]:
        made.open(path)
        assert made.page.locator("img").count() == 0
        assert made.page.get_by_text(name).count() >= 1
    made.open(f"/table/changes?{urlencode({'name': name})}")
    made.page.get_by_role("button", name="Compare").click()
    assert made.page.get_by_text("<script>alert(1)</script>").count() == 1
    assert made.page.get_by_text("\\u202eabc").count() == 1


def test_commands_are_copied(visit) -> None:
    made = visit()
    made.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    made.open("/table?name=shop.orders")
    made.page.get_by_role("button", name="Copy").first.click()
    made.page.get_by_text("Copied").wait_for()
    copied = made.page.evaluate("() => navigator.clipboard.readText()")
    assert copied == "rowlake rewrite-data-files shop.orders"


def test_rows_between_two_snapshots_are_shown(visit) -> None:
    made = visit()
    made.open("/table/history?name=shop.customers")
    made.page.get_by_text("rows changed").first.click()
    assert made.page.locator("tr:has(td.sign.update_postimage)").count() == 10
    assert made.page.locator("mark", has_text="gold").count() == 10
    assert made.page.locator("tr:has(td.sign.insert)").count() == 1


def test_the_column_of_the_ranges_is_chosen(visit) -> None:
    made = visit()
    made.open("/table/files?name=shop.orders")
    assert "hold a value of order_id" in made.page.content()
    made.page.get_by_label("Column").select_option(label="customer_id")
    made.page.wait_for_url("**column=2")
    assert "hold a value of customer_id" in made.page.content()


def test_without_a_script_everything_is_there(chromium, servers) -> None:
    server = servers[False]
    with chromium.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(server.gate.url)
        page.wait_for_url(f"http://127.0.0.1:{server.gate.port}/")
        page.get_by_role("link", name="shop.orders").click()
        page.get_by_role("link", name="Files").click()
        assert page.get_by_role("heading", name="Sort depth").is_visible()


def test_optimize_runs_after_a_dry_run_and_a_confirmation(visit) -> None:
    made = visit(actions=True)
    page = made.page
    made.open("/table/optimize?name=shop.orders")
    page.get_by_role("link", name="Dry run and optimize …").click()
    page.get_by_role("button", name="Run it").click()
    assert "/action" in page.url  # the box is not ticked
    page.get_by_role("checkbox").check()
    page.get_by_role("button", name="Run it").click()
    page.wait_for_url("**/activity")
    page.locator("#operations .pill.done").wait_for(timeout=60_000)
    assert "data files of" in page.locator("#operations").inner_text()
    made.open("/table/history?name=shop.orders")
    assert page.locator(".statement").first.inner_text() == "rewrite_data_files"
