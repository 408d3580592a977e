"""The tests run on an installed package, with the device of --device for those that take one."""

import pytest


def pytest_addoption(parser):
    parser.addoption("--device", default="cpu", help="where torch's tensors lie: cpu or cuda")


@pytest.fixture
def device(request):
    return request.config.getoption("--device")
