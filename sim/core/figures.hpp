#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/table.hpp"

namespace orrery {

/// The figures of one item of an answer: of a plan, a machine, a request. Each is given once, with
/// its key and value for JSON and CSV and its column for tables, which a page shows as well.
class Figures {
 public:
  using Json = nlohmann::ordered_json;

  class Figure {
   public:
    /// Tables show it in a column.
    Figure& shown(Column column, std::string text);
    Figure& json_only();
    Figure& csv_only();

   private:
    friend class Figures;
    std::string key;
    Json value;
    bool in_json = true, in_csv = true;
    Column column{""};
    std::optional<std::string> text;
  };

  /// "figures/rate" is "rate" in the object "figures", and the column "rate" of CSV. A value that
  /// is an object has a column of CSV for each member: "days_low", and "days" for "middle"; JSON
  /// has null for an object of which no member is known. The reference holds until the next figure.
  Figure& add(std::string key, Json value);
  /// A column that tables alone have.
  void show(Column column, std::string text);

  Json json() const;
  std::vector<Column> columns() const;     ///< The columns of tables.
  std::vector<std::string> cells() const;  ///< One for each of columns().
  /// Columns of CSV with their cells; `number` writes those that are no whole numbers.
  std::vector<std::pair<std::string, std::string>> csv(std::string (*number)(double)) const;

 private:
  std::vector<Figure> figures_;
};

/// A line for each item, which may have fewer columns than others, but not other ones.
Table table_of(const std::vector<Figures>& items, int indent = 2);

/// A line for each item under one of all keys, as RFC 4180 has it: what an item has not got is an
/// empty cell.
std::string csv_of(const std::vector<Figures>& items, std::string (*number)(double));
/// A number as JSON has it.
std::string all_digits(double value);

}  // namespace orrery
