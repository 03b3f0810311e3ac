#!/bin/sh
# Runs once, when the database's volume is new. Nobody who serves memories is a superuser: no policy confines one.
set -eu
psql --no-psqlrc --set ON_ERROR_STOP=1 --username "${POSTGRES_USER:-postgres}" --dbname postgres \
  --set owner_password="$OWNER_PASSWORD" --set server_password="$SERVER_PASSWORD" <<'SQL'
CREATE ROLE owner LOGIN CREATEROLE PASSWORD :'owner_password';
CREATE ROLE server LOGIN PASSWORD :'server_password';
CREATE DATABASE memstore OWNER owner;
\connect memstore
CREATE EXTENSION vector;
SQL
