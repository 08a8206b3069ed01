-- Labels that a person gave while looking through a run. The example has the label that counts; what stood in the table
-- is kept here.

create table corrections (
    run text not null references runs (id) on delete cascade,
    position integer not null,
    label integer not null,
    was integer,
    was_text text,
    was_written text not null,
    note text not null default '',
    at text not null,
    primary key (run, position)
) without rowid;
