"""The copies that a Buffer makes between the host and GPUs, on the stand-in driver: what is copied when, and that no side reads what is old."""
import textwrap

import pytest

from test_gpu_arrays import run

PRELUDE = """
import gc
import metile
from metile.runtime.device import Device
gpu, other, cpu = Device.of("cuda:0"), Device.of("cuda:1"), Device.of("cpu")
def copies(buffer, device=gpu):
    return buffer._mirrors[device.id].copies if device.id in buffer._mirrors else (0, 0)
def seen(buffer, device=gpu, is_written=False):
    '''The elements as a launch on the device finds them.'''
    array = buffer.on(device, is_written)
    out = np.empty(buffer.size, buffer.dtype)
    array._read(device.stream, out)
    return out
def overwrite(buffer, new, device=gpu):
    '''What a launch writes.'''
    buffer.on(device, True)._write(device.stream, np.ascontiguousarray(new, buffer.dtype).reshape(-1))
def fresh():
    return np.random.default_rng().standard_normal(35).astype(np.float32)
"""


def check(program: str):
    run(PRELUDE + textwrap.dedent(program))


def test_an_input_that_nobody_holds_is_copied_once():
    check("""
        first = fresh()
        buffer = metile.Buffer(data=first.copy())
        for _ in range(5):
            assert np.array_equal(seen(buffer), first)
        assert copies(buffer) == (1, 0)
    """)


@pytest.mark.parametrize("keep", ["array", "array[3:]", "memoryview(array)", "buffer.numpy()", "buffer.numpy()[::2]", "buffer.metal_buffer"])
def test_an_input_that_someone_holds_is_copied_for_every_launch(keep):
    check(f"""
        array = fresh()
        buffer = metile.Buffer(data=array)
        kept = {keep}
        if "array" not in {keep!r} or "memoryview" in {keep!r} or "[" in {keep!r}:
            del array
        for _ in range(3):
            new = fresh()
            buffer._array[:] = new  # by whoever holds the memory
            assert np.array_equal(seen(buffer), new)
        assert copies(buffer) == (3, 0)
        kept = array = None
        gc.collect()
        seen(buffer), seen(buffer)
        assert copies(buffer)[0] <= 4
    """)


def test_the_owner_of_a_view_counts_as_holding_it():
    check("""
        big = fresh()
        buffer = metile.Buffer(data=big[5:25])
        for _ in range(3):
            big[:] = fresh()
            assert np.array_equal(seen(buffer), big[5:25])
    """)


def test_what_is_written_through_a_view_that_is_gone_is_copied():
    check("""
        buffer = metile.Buffer.zeros(35)
        for count in range(1, 4):
            buffer.numpy()[:] = count
            assert np.array_equal(seen(buffer), np.full(35, count)) and np.array_equal(seen(buffer), np.full(35, count))
            assert copies(buffer) == (count, 0)
    """)


def test_numpy_brings_what_a_launch_wrote_once():
    check("""
        buffer = metile.Buffer.empty(35)
        new = fresh()
        overwrite(buffer, new)
        assert np.array_equal(buffer.numpy(), new) and np.array_equal(buffer, new)
        assert copies(buffer) == (1, 1)
    """)


def test_sync_brings_it_to_views_that_someone_holds_alone():
    check("""
        buffer = metile.Buffer.zeros((5, 7))
        new = fresh()
        overwrite(buffer, new)
        gpu.sync()
        assert copies(buffer) == (1, 0) and buffer in gpu.pending
        view = buffer.numpy()
        assert np.array_equal(view.ravel(), new)
        overwrite(buffer, new + 1)
        gpu.sync()
        assert np.array_equal(view.ravel(), new + 1) and buffer not in gpu.pending
        gpu.sync()
        assert copies(buffer)[1] == 2
    """)


def test_a_launch_behind_another_that_wrote_does_not_bring_back_old_elements():
    check("""
        buffer = metile.Buffer.zeros(35)
        view = buffer.numpy()
        new = fresh()
        overwrite(buffer, new)
        view[:] = -1  # in vain: the launch writes later
        assert np.array_equal(seen(buffer), new)
        assert np.array_equal(buffer.numpy(), new)
    """)


def test_several_devices_see_the_newest_elements():
    check("""
        array = fresh()
        buffer = metile.Buffer(data=array.copy())
        places = [gpu, other, cpu]
        for step in range(9):
            to, then = places[step % 3], places[(step + 1 + step // 3) % 3]
            assert np.array_equal(seen(buffer, to), array)
            array = fresh()
            if to is cpu:
                buffer.on(cpu, True)
                buffer._flat[:] = array
                buffer._lend()
            else:
                overwrite(buffer, array, to)
            assert np.array_equal(seen(buffer, then), array), step
        assert np.array_equal(buffer.numpy(), array)
    """)


def test_read_only_arrays_are_copied_and_never_written():
    check("""
        array = fresh()
        array.flags.writeable = False
        buffer = metile.Buffer(data=array)
        assert np.array_equal(seen(buffer), array)
        with pytest.raises(vortex.Error, match="read-only"):
            buffer.on(gpu, True)
        assert not buffer.numpy().flags.writeable
    """)


def test_empty_buffers_and_threads():
    check("""
        import threading
        assert seen(metile.Buffer(data=fresh()[:0])).shape == (0,)
        buffer = metile.Buffer(data=fresh())
        expected = buffer.numpy().copy()
        wrong = []
        def work():
            for _ in range(30):
                if not np.array_equal(seen(buffer), expected):
                    wrong.append(1)
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        assert not wrong
    """)


@pytest.mark.parametrize("make", ["metile.Buffer(data=first.copy())", "on_gpu(first)", "Interface(on_gpu(first))"])
def test_autotune_restores_what_launches_wrote(make):
    check(f"""
        from metile.frontend.autotune import _contents, _restore
        first = fresh()
        value = {make}
        if isinstance(value, metile.Buffer):
            overwrite(value, first)  # newer there than here
        saved = _contents(dict(x=value, n=3, held=np.ones(3)))
        for _ in range(3):
            if isinstance(value, metile.Buffer):
                overwrite(value, fresh())
            else:
                vortex.asarray(value, "cuda:0")._write(gpu.stream, fresh())
            _restore(saved)
            now = seen(value) if isinstance(value, metile.Buffer) else vortex.asarray(value, "cuda:0").numpy()
            assert np.array_equal(now, first)
    """)


def test_autotune_restores_arrays_of_every_kind_on_the_cpu():
    import numpy as np

    import metile
    import vortex
    from metile.frontend.autotune import _contents, _restore
    from test_lent_arrays import Lent

    first = np.random.default_rng().standard_normal(35).astype(np.float32)
    arrays = [first.copy() for _ in range(4)]
    given = dict(zip("abcd", (arrays[0], metile.Buffer(data=arrays[1]), vortex.asarray(arrays[2], "cpu"), Lent(arrays[3]))))
    saved = _contents({**given, "n": 3})
    for array in arrays:
        array[:] = -1
    _restore(saved)
    for array in arrays:
        np.testing.assert_array_equal(array, first)
