-- Runs, what they ask, and what came back. Examples are kept whole, so that a run goes on after its table is gone.

create table runs (
    id text primary key,
    name text not null,
    note text not null default '',
    created text not null,
    state text not null,
    reason text,
    shape text not null,
    engine text not null,
    identity text not null default '',
    facts text not null,
    rows integer not null,
    done integer not null default 0,
    failed integer not null default 0,
    cached integer not null default 0,
    use_cache integer not null,
    summary text,
    deleted text
) without rowid;

create table questions (
    id integer primary key,
    body text not null unique
);

create table examples (
    run text not null references runs (id) on delete cascade,
    position integer not null,
    row integer not null,
    line integer,
    state text not null,
    question integer not null references questions (id),
    name text not null,
    label integer,
    label_text text,
    written text not null,
    extra text,
    images text,
    primary key (run, position)
) without rowid;

create table outcomes (
    run text not null references runs (id) on delete cascade,
    position integer not null,
    probabilities text,
    prediction text,
    top real,
    margin real,
    rank real,
    tie integer not null default 0,
    correct integer,
    failure text,
    message text,
    elapsed_s real not null,
    shape text not null,
    model text not null,
    cached integer not null default 0,
    primary key (run, position)
) without rowid;

create index outcomes_by_rank on outcomes (run, rank desc, position);
create index outcomes_by_top on outcomes (run, top, position);
create index outcomes_wrong on outcomes (run, correct, rank desc) where correct = 0;
create index outcomes_failed on outcomes (run, position) where failure is not null;

create table answers (
    key blob primary key,
    probabilities text not null,
    model text not null
) without rowid;
