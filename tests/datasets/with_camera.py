"""The example with a camera, whose file holds no video: nothing here decodes one."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
from tmaops.dataset import example

CAMERA = "observation.images.top"


def write(root, lengths, fps=50, files=2):
    example.write(root, lengths, fps, files)
    path = next((root / "meta" / "episodes").rglob("*.parquet"))
    table = pq.read_table(path)
    ends = [index / fps for index in table["dataset_to_index"].to_pylist()]
    places = {"chunk_index": [0] * len(ends), "file_index": [0] * len(ends)}
    places |= {"from_timestamp": [0.0, *ends[:-1]], "to_timestamp": ends}
    for name, values in places.items():
        table = table.append_column(f"videos/{CAMERA}/{name}", pa.array(values))
    pq.write_table(table, path)
    path = root / "meta" / "info.json"
    info = json.loads(path.read_text())
    info["video_path"] = "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4"
    info["features"][CAMERA] = {"dtype": "video", "shape": [96, 96, 3], "names": ["height", "width", "channels"]}
    path.write_text(json.dumps(info))
    video = root / "videos" / CAMERA / "chunk-000" / "file-000.mp4"
    video.parent.mkdir(parents=True)
    video.write_bytes(b"not a video")
