"""A database with all that makes restoring hard: keys that cascade, a view, a sequence, an identity."""

SHOP = """
CREATE TABLE customers (id serial PRIMARY KEY, name text NOT NULL, "Level %" int DEFAULT 1);
CREATE TABLE orders (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  customer int NOT NULL REFERENCES customers ON DELETE CASCADE,
  total numeric(10,2) CHECK (total >= 0),
  placed timestamptz DEFAULT now()
);
CREATE SCHEMA audit;
CREATE TABLE audit."log entries" (at timestamptz, what text);
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN INSERT INTO audit."log entries" VALUES (now(), TG_OP); RETURN NULL; END $$;
CREATE TRIGGER orders_note AFTER INSERT OR UPDATE OR DELETE ON orders
  FOR EACH ROW EXECUTE FUNCTION note();
CREATE VIEW spending AS
  SELECT c.name, sum(o.total) AS spent FROM customers c JOIN orders o ON o.customer = c.id GROUP BY 1;
CREATE MATERIALIZED VIEW ranks AS SELECT name, rank() OVER (ORDER BY spent DESC) FROM spending;
CREATE INDEX orders_customer ON orders (customer);
INSERT INTO customers (name) SELECT 'customer ' || i FROM generate_series(1, 200) i;
INSERT INTO orders (customer, total) SELECT 1 + i % 200, i FROM generate_series(1, 1000) i;
REFRESH MATERIALIZED VIEW ranks;
COMMENT ON TABLE orders IS 'what was bought; -- not a comment of SQL';
"""
