"""Kernels that `liedyn export` writes: OpenCL C compiled and launched as its comment says, PTX assembled."""
import re
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
from assembler import assembled
from command_line import run
from liedyn.interop.device_files import write_device_export
from opencl import has_opencl
from traced_cases import expected_of, function_options

N = 5


def launched(path, name, inputs, shapes, dtype):
    """Return the results of a kernel for arrays (N, n) by rows."""
    cl = pytest.importorskip("pyopencl")
    if not has_opencl():
        pytest.skip("needs an OpenCL device, such as Debian's pocl-opencl-icd")
    context = cl.create_some_context(interactive=False)
    queue, kernel = cl.CommandQueue(context), getattr(cl.Program(context, path.read_text()).build(), name)
    def buffer(x):
        return cl.Buffer(context, cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR, hostbuf=x)
    results = {result: np.empty((N, *shape), dtype, order="F") for result, shape in shapes.items()}
    buffers = {result: buffer(x.ravel(order="A")) for result, x in results.items()}
    places = [y for x in inputs.values() for y in (buffer(np.ascontiguousarray(x, dtype)), 0, x.shape[1], 1)]
    arguments = [np.int64(x) if isinstance(x, int) else x for x in (N, *places)]
    kernel(queue, (64,), (64,), *arguments, *buffers.values())
    for result, x in results.items():
        flat = np.empty(x.size, dtype)
        cl.enqueue_copy(queue, flat, buffers[result])
        results[result] = flat.reshape(x.shape, order="F")
    return results


@pytest.mark.parametrize(("function", "dtype"), [("hybrid_dynamics", "float64"), ("jacobian", "float32")])
def test_kernels_are_launched_as_their_comment_says(function, dtype, tmp_path):
    model = ld.load("robots/double_pendulum.yaml")
    options, rng = function_options(model, function), np.random.default_rng(0)
    export, (path,) = write_device_export(model, function, tmp_path / "f.cl", to="opencl", dtype=dtype, **options)
    text = path.read_text()
    names = re.search(r"Kernel f\(n; (.*)\)\.", text)[1]
    inputs = {name: rng.standard_normal((N, model.nv)) for name in re.findall(r"(\w+)_at", names)}
    expected = expected_of(model, function, inputs, options)
    results = names.replace(" pointer", "").split("; ")[len(inputs):]
    assert export.name == "f" and f"Arrays are of {'float' if dtype == 'float32' else 'double'};" in text
    computed = launched(path, "f", inputs, {name: np.shape(x)[1:] for name, x in zip(results, expected, strict=True)}, dtype)
    for x, reference in zip(computed.values(), expected, strict=True):
        np.testing.assert_allclose(x, reference, rtol=0, atol=1e-13 if dtype == "float64" else 1e-6)


def test_ptx_is_assembled_for_the_chosen_gpu(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    robot = str(Path(__file__).parents[2] / "robots/double_pendulum.yaml")
    for options, processor in (([], "sm_80"), (["--gpu", "sm_90", "--dtype", "float32", "-o", "f.ptx"], "sm_90")):
        done = run("export", robot, "--to", "ptx", "--function", "mass_matrix", *options)
        assert done.exit_code == 0, done.stderr
        text = (tmp_path / (options[-1] if options else "double_pendulum_mass_matrix.ptx")).read_text()
        assert f".target {processor}" in text and "// Launch: blocks of 64 threads" in text
        assert "Number [j, k] of the result M of state i is at i + n (j + 2 k)." in text
        assert assembled(text, processor, tmp_path).spilled == 0
