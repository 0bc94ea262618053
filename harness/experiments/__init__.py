"""Experiments: tasks x providers x settings x repeats, judged without a model.

`plan` reads the file, `carry` runs what is not yet done, `judge` says what is
right, `results` keeps one line a run, `cells` sums them up, `report` writes the
page, `contrast` compares two experiments.
"""
