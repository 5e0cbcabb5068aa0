"""Devices on the page: on the map, on a node, and on the page of a pod."""

from __future__ import annotations

from importlib import resources

import pytest

from tests.web.conftest import OpenPage, go
from tests.web.page_server import page_server

pytestmark = pytest.mark.web

CLASS = "deviceclass.resource.kubernetes.io/gpu"


def test_the_map_the_node_and_the_pod_show_devices_and_who_has_them(open_page: OpenPage) -> None:
    from playwright.sync_api import expect

    with (
        resources.as_file(resources.files("mooring") / "demo_devices") as folder,
        page_server(folder) as served,
    ):
        page = open_page(served.address)
        expect(page.locator(".whole")).to_contain_text("78% gpu devices")
        page.get_by_label("Resource").select_option(CLASS)
        expect(page.locator(".legend")).to_contain_text("gpu devices requested")
        page.locator("canvas").first.hover(position={"x": 100, "y": 100})
        expect(page.locator(".bubble")).to_contain_text("gpu-1gpu devices 4 of 4")
        go(page, "time")
        plots = page.get_by_label("Plots over time")
        expect(plots).to_contain_text("gpu devices 78%")
        expect(plots).not_to_contain_text(CLASS)

        go(page, "map/slices-1")
        panel = page.get_by_role("complementary", name="Node slices-1")
        expect(panel).to_contain_text("5 devices, at the end")
        rows = panel.locator(".devices li")
        expect(rows.filter(has_text="gpu-0-slice-3")).to_contain_text("free")
        expect(rows.first).to_contain_text("blocked")
        rows.filter(has_text="gpu-0-slice-0").get_by_role("link").click()

        expect(page.get_by_role("heading", level=1)).to_contain_text("ml/serve-")
        held = page.locator(".pod-devices")
        expect(held).to_contain_text("gpu.example.com/slices-1/gpu-0-slice-0")

        go(page, "pending")
        first = page.get_by_role("region", name="Rejected by").get_by_role("button").first
        expect(first).to_contain_text("DynamicResources")
        expect(first).to_contain_text("1 pod · 100% of nodes")
        expect(page.locator(".cause")).not_to_contain_text("preemption")

        go(page, "pod/ml/finetune")
        expect(held).to_contain_text("Devices that it did not get")
        expect(held).to_contain_text("in use: ml/notebook")
        expect(page.locator(".would")).to_contain_text("accept a device with memory 80Gi")

        go(page, "map/gpu-1")
        shares = page.locator(".devices li").filter(has_text="nic-0")
        expect(shares).to_contain_text("bandwidth 40G")
        assert shares.get_by_role("link").count() == 2
        page.close()
