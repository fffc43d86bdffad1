"""What is no table of runs is refused with a way out."""

import pytest

from bayescale.runs import read_runs


def written(tmp_path, content):
    path = tmp_path / "runs.csv"
    path.write_text(content)
    return path


def test_a_chart_of_curves_by_name_alone_is_explained(tmp_path):
    with pytest.raises(ValueError, match=r"one column a run \(2 runs: run-a, run-b\), one row a step \(2 steps\)"):
        read_runs(written(tmp_path, "Step,run-a,run-b\n0,9,9\n100,4,4\n"))
    with pytest.raises(ValueError, match="the columns are not settled") as caught:
        read_runs(written(tmp_path, "step,params,note\n0,1e8,9\n"))
    assert "wide form" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("# exported\nparams,tokens,loss\n1e8,2e9,3\n", "the first line is '# exported'.*Delete what stands above it"),
        ("params tokens loss\n1e8 2e9 3\n", "The only column is 'params tokens loss': separate columns by commas"),
        ("params,tokens,loss,loss\n1e8,2e9,3,3\n", r"'loss' \(2 times\). Rename or delete all but one"),
    ],
    ids=["comment", "spaces", "twice"],
)
def test_a_header_that_is_none_is_refused_with_the_way_out(tmp_path, text, said):
    with pytest.raises(ValueError, match=said):
        read_runs(written(tmp_path, text))
