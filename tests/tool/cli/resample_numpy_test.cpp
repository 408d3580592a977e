// What numpy writes is read, and what tmaops writes is read by numpy. Skipped without a Python that has numpy
// (TMAOPS_PYTHON names one).
#include <gtest/gtest.h>

#include "cli/resample_fixture.hpp"

namespace tmaops::test {
namespace {

constexpr const char* kScript = R"(
import io, subprocess, sys, zipfile
import numpy as np
tool, folder = sys.argv[1:]
rows = 100
times = 1_700_000_000 * 10**9 + np.arange(rows, dtype=np.int64) * 10**7
arrays = dict(
    timestamps=times, action=np.linspace(0, 1, rows * 3).reshape(rows, 3).astype(np.float32),
    fortran=np.asfortranarray(np.arange(rows * 6.0).reshape(rows, 2, 3)), half=np.arange(rows).astype(np.float16),
    task=np.array(['pick', 'pl\u00e4ce'] * (rows // 2)), step=np.arange(rows, dtype=np.uint16),
    done=np.arange(rows) % 9 == 0, scale=np.float64(3), quaternion=np.tile([0.0, 0, 0, 1], (rows, 1)))

class Pipe:  # not seekable: zipfile then writes the sizes behind the data
    def __init__(self): self.data = io.BytesIO()
    def write(self, data): return self.data.write(data)
    def flush(self): pass

np.savez(folder + '/stored.npz', **arrays)
np.savez_compressed(folder + '/packed.npz', **arrays)
pipe = Pipe()
with zipfile.ZipFile(pipe, 'w', zipfile.ZIP_DEFLATED) as archive:
    for name, array in arrays.items():
        with archive.open(name + '.npy', 'w', force_zip64=True) as member:
            np.lib.format.write_array(member, np.asanyarray(array), version=(2, 0))
open(folder + '/piped.npz', 'wb').write(pipe.data.getvalue())

for name in ('stored', 'packed', 'piped'):
    for compress in ([], ['--compress']):
        output = folder + '/out.npz'
        subprocess.run([tool, '-q', 'resample', f'{folder}/{name}.npz', '-o', output, '--hz', '200', '--force'] + compress, check=True)
        assert zipfile.ZipFile(output).testzip() is None
        got = np.load(output, allow_pickle=False)
        targets = got['timestamps']
        assert targets.dtype == np.int64 and len(targets) == 2 * rows - 1
        for key, array in arrays.items():
            assert got[key].dtype == np.asanyarray(array).dtype, key
        x, y = (times - times[0]) / 1e9, (targets - times[0]) / 1e9
        assert np.abs(got['fortran'][:, 1, 2] - np.interp(y, x, arrays['fortran'][:, 1, 2])).max() < 1e-9
        assert np.abs(got['action'][:, 2] - np.interp(y, x, arrays['action'][:, 2])).max() < 1e-6
        before = np.searchsorted(times, targets, side='right') - 1
        for key in ('task', 'step', 'done'):
            assert (got[key] == arrays[key][before]).all(), key
        assert got['scale'] == 3 and got['valid'].all()
print('agreed')
)";

class ResampleNumpy : public ResampleCommandTest {};

TEST_F(ResampleNumpy, archives_go_both_ways) {
  const char* chosen = std::getenv("TMAOPS_PYTHON");
  const std::string python = chosen != nullptr ? chosen : TMAOPS_PYTHON;
  if (python.empty() || Tool({"-c", "import numpy"}, {}, python).wait().exit_code != 0)
    GTEST_SKIP() << "no Python with numpy: set TMAOPS_PYTHON to one";
  const ToolResult result = Tool({"-c", kScript, TMAOPS_TOOL, folder.path()}, {}, python).wait();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "agreed\n");
}

}  // namespace
}  // namespace tmaops::test
