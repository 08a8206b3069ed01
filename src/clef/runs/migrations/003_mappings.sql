-- Which column plays which role, as a person said it for a header; the next table with this header is read the same way.

create table mappings (
    header text primary key,
    mapping text not null
) without rowid;
