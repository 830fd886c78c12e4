// A small flash sale: four processes sell a stock of 100 items, which is a number in a file. Each
// process reads the stock, waits for the payment, and writes the new stock. Without a lock they
// sell more than there is; with a lock they sell exactly 100. `holdfast demo flash-sale` does the
// same with 20,000 orders.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <holdfast/holdfast.hpp>
#include <iostream>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace {

using namespace std::chrono_literals;
constexpr int stock = 100, buyers = 4, orders_each = 60;

int read_number(const std::string& file) {
  int n = 0;
  std::ifstream{file} >> n;
  return n;
}

void write_number(const std::string& file, int n) {
  const auto fresh = file + "." + std::to_string(getpid());  // no process reads it half written
  std::ofstream{fresh} << n;
  std::filesystem::rename(fresh, file);
}

bool buy_one(const std::string& stock_file) {
  const int left = read_number(stock_file);
  if (left == 0) return false;
  std::this_thread::sleep_for(500us);  // the payment
  write_number(stock_file, left - 1);
  return true;
}

// #region flash_sale
// One buyer, in a process of its own. Returns how many items it bought.
int buyer(bool locked) {
  std::optional<holdfast::mutex> item;
  if (locked) item.emplace(holdfast::open("sqlite:locks.db"), "stock:item");

  int sold = 0;
  for (int i = 0; i < orders_each; ++i) {
    auto guard = locked ? std::unique_lock{*item} : std::unique_lock<holdfast::mutex>{};
    sold += buy_one("stock") ? 1 : 0;
  }
  return sold;
}
// #endregion

// A session does not survive fork(): each buyer opens its own.
int sell(bool locked) {
  write_number("stock", stock);
  for (int i = 0; i < buyers; ++i) {
    if (fork() == 0) _exit(buyer(locked));
  }
  int sold = 0, status = 0;
  while (wait(&status) > 0) sold += WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  return sold;
}

}  // namespace

int main() {
  const int without = sell(false);
  const int with = sell(true);
  std::cout << "stock 100: sold " << without << " without a lock, " << with << " with one\n";
  return with == stock ? 0 : 1;
}
