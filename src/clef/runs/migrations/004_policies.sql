-- Policies are kept by name. A run's numbers are kept as they were measured, each with the state of the run it is of:
-- `revision` goes up with every change of what its outcomes or its labels are.

create table policies (
    name text primary key,
    body text not null,
    run text,
    created text not null
) without rowid;

create table measures (
    run text not null references runs (id) on delete cascade,
    name text not null,
    stamp text not null,
    created text not null,
    body text not null,
    primary key (run, name)
) without rowid;

alter table runs add column revision integer not null default 0;
alter table runs drop column summary;
