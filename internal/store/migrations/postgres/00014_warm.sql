-- +goose Up
-- The data folder in which the last attempt of a repository began: it has the newest clone and caches.
CREATE TABLE warm_folders (
    owner  TEXT NOT NULL,
    name   TEXT NOT NULL,
    folder TEXT NOT NULL,               -- a policy.Node's Folder
    PRIMARY KEY (owner, name)
);
