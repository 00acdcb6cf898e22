-- +goose Up
-- SQLite has one node, so no attempt is left to another. The versions of both databases stay equal.
SELECT 1;
