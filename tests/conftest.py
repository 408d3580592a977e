"""The tests run on an installed package, with the device of --device for those that take one."""

import pytest


def pytest_addoption(parser):
    parser.addoption("--device", default="cpu", help="where torch's tensors lie: cpu or cuda")
    parser.addoption("--slow", action="store_true", help="whole models too, which take minutes and some GB of memory")


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: runs with --slow alone")


def pytest_collection_modifyitems(config, items):
    for item in items:
        if item.get_closest_marker("slow") and not config.getoption("--slow"):
            item.add_marker(pytest.mark.skip(reason="takes minutes: needs --slow"))


@pytest.fixture
def device(request):
    return request.config.getoption("--device")
