#include <algorithm>
#include <iostream>

#include "sim/cli/command_sweep.hpp"
#include "sim/cli/sweep_options.hpp"
#include "sim/core/nearest.hpp"
#include "sim/core/output_files.hpp"
#include "sim/sweep/plot.hpp"

namespace po = boost::program_options;

namespace orrery {

int run_sweep_plot(const Arguments& arguments) {
  const auto text = [](const std::string& name) {
    return po::value<std::string>()->value_name(name);
  };
  po::options_description options{"Options", 100};
  options.add_options()                                                                  //
      ("output", text("FILE"), "the SVG document (also -o FILE)")                        //
      ("kind", text("line|heat|pareto"), "what is drawn (default line)")                 //
      ("x", text("NAME"), "key along the x axis; of a Pareto chart a figure")            //
      ("y", text("NAME"), "figure along the y axis; of a heat map a key")                //
      ("by", text("KEY"), "line: a line for each of its values")                         //
      ("figure", text("NAME"), "heat: what is coloured (default tokens_per_s_per_gpu)")  //
      ("force", "replace a file that Orrery did not write")                              //
      ("help", "this text");
  const ParsedOptions parsed = parse_options(options, arguments, {});
  if (parsed.has("help")) {
    std::cout << "usage: orrery sweep plot DIR -o FILE.svg [options]\n\n"
                 "Keys are those that the sweep varies, figures the columns of its rows.\n\n"
              << options;
    return exit_ok;
  }
  const SweepFolder folder = sweep_folder_of(parsed);
  if (!parsed.has("output")) fail_input({}, "--output is missing", "name a file: -o plot.svg");
  if (!parsed.text("output").ends_with(".svg"))
    fail_input({"", "--output"},
               "'" + parsed.text("output") + "' is not an SVG document by its name",
               "end it in .svg; rsvg-convert or a browser makes a PNG of it");
  PlotRequest request;
  const std::vector<std::string> kinds{"line", "heat", "pareto"};
  const std::string kind = parsed.has("kind") ? parsed.text("kind") : kinds.front();
  const auto found = std::find(kinds.begin(), kinds.end(), kind);
  if (found == kinds.end())
    fail_input({"", "--kind"}, "'" + kind + "' is not a kind of plot", suggestion(kind, kinds));
  request.kind = static_cast<PlotRequest::Kind>(found - kinds.begin());
  const auto given = [&](const char* name) {
    return parsed.has(name) ? parsed.text(name) : std::string{};
  };
  request.x = given("x");
  request.y = given("y");
  request.by = given("by");
  request.figure = given("figure");
  if (!request.by.empty() && request.kind != PlotRequest::Kind::line)
    fail_input({"", "--by"}, "belongs to --kind line", "leave it out");
  if (!request.figure.empty() && request.kind != PlotRequest::Kind::heat)
    fail_input({"", "--figure"}, "belongs to --kind heat", "name the figure by --y");
  refuse_sweeps_own_files(folder, parsed.text("output"));
  OutputFiles files{parsed.has("force")};
  files.add(parsed.text("output"), plot_svg(folder, request));
  files.commit();
  return exit_ok;
}

}  // namespace orrery
