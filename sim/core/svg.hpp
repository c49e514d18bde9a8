#pragma once

#include <string>
#include <utility>
#include <vector>

namespace orrery {

enum class Anchor { start, middle, end };

struct SvgText {
  double size = 12.0;
  Anchor anchor = Anchor::start;
  std::string colour = "#222";
  bool bold = false;
  bool upwards = false;  ///< Read from bottom to top.
};

/// A drawing in Scalable Vector Graphics 1.1: pixels from the upper left corner. Text goes in as it
/// is and comes out escaped; numbers have two decimals whatever the locale says.
class Svg {
 public:
  using Point = std::pair<double, double>;
  struct Box {
    double x, y, width, height;
  };

  Svg(double width, double height);

  void line(Point from, Point to, const std::string& colour, double width = 1.0);
  void polyline(const std::vector<Point>& points, const std::string& colour, double width);
  /// `title`: what a browser shows under the pointer.
  void rectangle(Point corner, double width, double height, const std::string& fill,
                 const std::string& title = "");
  /// Many rectangles of one colour, as one shape.
  void boxes(const std::vector<Box>& all, const std::string& fill);
  /// `opacity`: 1 hides what is below.
  void circle(Point centre, double radius, const std::string& fill, const std::string& title = "",
              double opacity = 1.0);
  void text(Point at, const std::string& words, const SvgText& style = {});

  std::string document() const;

 private:
  double width_, height_;
  std::string body_;
};

}  // namespace orrery
