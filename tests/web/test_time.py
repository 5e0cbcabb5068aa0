"""Virtual time: slid over, played, jumped into; the map and the plots go along."""

from __future__ import annotations

import re

import pytest

from tests.web.conftest import OpenPage
from tests.web.page_server import PageServer

pytestmark = pytest.mark.web

PODS_PLACED = "() => document.querySelector('.map').drawing.shown.scene.pods.length"


def test_the_slider_brings_back_the_cluster_of_that_moment(
    served: PageServer, open_page: OpenPage
) -> None:
    from playwright.sync_api import expect

    page = open_page(served.view("time"))
    expect(page.locator(".plot canvas")).to_have_count(4)
    expect(page.locator("canvas[data-pictures]")).to_be_visible()
    at_end = page.evaluate(PODS_PLACED)
    slider = page.get_by_role("slider", name="Moment")
    slider.fill("200")
    expect(page.locator(".moment")).to_contain_text(re.compile("after .* changes of"))
    assert page.evaluate(PODS_PLACED) > at_end  # Jobs were still running.
    slider.press("End")
    expect(page.locator(".moment")).to_contain_text("at the end")
    assert page.evaluate(PODS_PLACED) == at_end


def test_one_change_back_is_one_pod_less_or_more(served: PageServer, open_page: OpenPage) -> None:
    from playwright.sync_api import expect

    page = open_page(served.view("time"))
    page.get_by_label("Slide by").select_option("change")
    page.get_by_role("slider", name="Moment").fill("0")
    expect(page.locator(".moment")).to_contain_text("after 0 changes")
    bound_before = page.evaluate(PODS_PLACED)
    page.get_by_role("button", name="One change forward").click()
    expect(page.locator(".moment")).to_contain_text("after 1 change of")
    assert abs(page.evaluate(PODS_PLACED) - bound_before) == 1


def test_it_plays_to_the_end_and_can_be_paused(served: PageServer, open_page: OpenPage) -> None:
    from playwright.sync_api import expect

    page = open_page(served.view("time"))
    page.get_by_role("button", name="Play").click()
    expect(page.locator(".moment")).not_to_contain_text("at the end")
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    expect(page.locator(".moment")).to_contain_text("changes of")


def test_an_event_is_jumped_to(served: PageServer, open_page: OpenPage) -> None:
    from playwright.sync_api import expect

    page = open_page(served.view("time"))
    page.get_by_label("Kind").select_option("finished")
    events = page.get_by_role("table", name="Events")
    expect(events.get_by_role("row").nth(1)).to_contain_text("finished")
    button = events.get_by_role("button", name=re.compile("Go to")).first
    when = button.inner_text()
    button.click()
    expect(page.locator(".moment strong")).to_have_text(when)


def test_the_moment_stays_when_the_view_changes(served: PageServer, open_page: OpenPage) -> None:
    from playwright.sync_api import expect

    page = open_page(served.view("time"))
    page.get_by_role("slider", name="Moment").fill("300")
    moment = page.locator(".moment").inner_text()
    page.get_by_role("link", name="Map", exact=True).click()
    expect(page.locator(".moment")).to_have_text(moment)
