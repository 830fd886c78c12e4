#!/usr/bin/env python3
"""Makes orders.csv and stock.csv for the flash sale, the same bytes for the same seed.

20,000 orders over 50 products. Demand is skewed as in shops: the product of rank r is ordered in proportion to 1 / r.
Of the products that people want most there is less than they want (30 to 60 % of the demand), of the others there is
more than enough. Usage: make_orders.py [--seed N] [--orders N] [--products N] [--out FOLDER]
"""
import argparse
import csv
import itertools
import pathlib
import random

QUANTITIES, WEIGHTS = (1, 2, 3, 4, 5), (70, 18, 7, 3, 2)
SCARCE = 0.4  # this part of the products, the popular ones, has more demand than stock


def draw_orders(rng, count, names):
    # A product's popularity is independent of its number.
    ranked = rng.sample(names, len(names))
    popularity = list(itertools.accumulate(1 / rank for rank in range(1, len(names) + 1)))
    for number in range(1, count + 1):
        product = rng.choices(ranked, cum_weights=popularity)[0]
        yield (100_000 + number, f"C{rng.randint(1, 6000):04}", product, rng.choices(QUANTITIES, WEIGHTS)[0])


def draw_stock(rng, orders, names):
    demand = dict.fromkeys(names, 0)
    for _, _, product, quantity in orders:
        demand[product] += quantity
    by_demand = sorted(names, key=lambda name: -demand[name])
    scarce = set(by_demand[:round(SCARCE * len(names))])
    for name in names:
        factor = rng.uniform(0.3, 0.6) if name in scarce else rng.uniform(1.1, 2.0)
        yield name, max(1, round(demand[name] * factor))


def write(path, header, rows):
    with open(path, "w", newline="", encoding="ascii") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(header)
        out.writerows(rows)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--seed", type=int, default=2024)
    arguments.add_argument("--orders", type=int, default=20_000)
    arguments.add_argument("--products", type=int, default=50)
    arguments.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent)
    given = arguments.parse_args()

    rng = random.Random(given.seed)
    names = [f"P{number:02}" for number in range(1, given.products + 1)]
    orders = list(draw_orders(rng, given.orders, names))
    write(given.out / "orders.csv", ("order_id", "customer", "product_id", "quantity"), orders)
    write(given.out / "stock.csv", ("product_id", "stock"), draw_stock(rng, orders, names))


if __name__ == "__main__":
    main()
