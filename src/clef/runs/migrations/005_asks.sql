-- What was asked on the Ask page and what came back, so that it can be looked up and opened again; and what a person
-- chose for good, such as to keep nothing.

create table asks (
    id text primary key,
    key blob not null unique,
    at text not null,
    draft text not null,
    reply text not null,
    words text not null,
    questions integer not null,
    model text not null,
    shape text not null,
    bytes integer not null
) without rowid;

create index asks_by_time on asks (at desc, id, bytes);

create table choices (
    name text primary key,
    value text not null
) without rowid;
