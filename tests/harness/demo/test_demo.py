from harness.demo import DEMO_ARCHIVE, DEMO_FILES, copy_demo
from harness.workspace import Workspace


def test_three_files_are_listed_and_an_archive_is_there(tmp_path):
    folder = copy_demo(tmp_path / "deep" / "demo")
    assert Workspace(folder).listing() == list(DEMO_FILES)
    assert (folder / DEMO_ARCHIVE).stat().st_size > 0


def test_the_tasks_have_one_right_answer(tmp_path):
    folder = copy_demo(tmp_path, None)
    texts = {name: (folder / name).read_text() for name in DEMO_FILES}
    assert max(texts, key=lambda name: len(texts[name])) == "errors.log"
    assert [name for name in DEMO_FILES if "timed out" in texts[name]] == ["errors.log"]
    assert [name for name in DEMO_FILES if "rotate" in texts[name]] == ["notes.txt"]


def test_what_is_there_is_left_alone(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    copy_demo(tmp_path, None)
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert not (tmp_path / DEMO_ARCHIVE).exists()
    copy_demo(tmp_path)
    copy_demo(tmp_path)
