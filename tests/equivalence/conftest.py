"""Fixtures shared by the equivalence tests."""
import pytest


@pytest.fixture(params=["cpu", "interpreter", "check", "device"])
def backend(request, device):
    """Words for the driver. The device of ./test only where it is another one."""
    if request.param == "device" and device in ("cpu", "interpreter"):
        pytest.skip("that is the CPU")
    return ["--check"] if request.param == "check" else ["--device", device if request.param == "device" else request.param]
