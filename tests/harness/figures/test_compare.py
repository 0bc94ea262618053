from harness.figures.compare import compare, read_published, same


def test_every_entry_but_the_real_models_is_compared():
    published = read_published()
    entries = {figure.path[0] for figure in compare({})}
    left_out = {"what", "counting", "six_tasks_on_the_real_model"}
    assert entries == published.keys() - left_out


def test_what_was_not_measured_differs():
    figures = compare({})
    assert all(figure.agrees != figure.exact for figure in figures)


def test_what_was_published_agrees_with_itself():
    assert all(figure.agrees for figure in compare(read_published()))


def test_one_token_more_differs():
    measured = read_published()
    measured["plan"]["prompts"] = [204, 269, 343]
    measured["plan"]["in"] = 816
    wrong = [figure.path for figure in compare(measured) if not figure.agrees]
    assert wrong == [("plan", "in"), ("plan", "prompts")]


def test_times_never_differ():
    measured = read_published()
    measured["harness_overhead_ms_per_three_turn_run"] = 1e6
    assert all(figure.agrees for figure in compare(measured))


def test_floats_may_differ_in_the_last_bit_only():
    assert same(0.3, 0.1 + 0.2)
    assert not same(0.000684, 0.000685)
    assert not same("a", 1)


def test_as_json():
    figure = compare(read_published())[0]
    assert figure.as_json() == {
        "figure": ["plan", "cap"],
        "published": 20,
        "measured": 20,
        "exact": True,
        "agrees": True,
    }
