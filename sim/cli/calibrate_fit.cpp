#include "sim/cli/calibrate_fit.hpp"

#include <algorithm>
#include <iostream>

#include "sim/calibration/calibration_json.hpp"
#include "sim/calibration/calibration_text.hpp"
#include "sim/calibration/fit.hpp"
#include "sim/calibration/nccl_tests.hpp"
#include "sim/cli/options.hpp"
#include "sim/core/catalog.hpp"
#include "sim/core/output_files.hpp"
#include "sim/core/text_file.hpp"

namespace po = boost::program_options;

namespace orrery {
namespace {

using Texts = std::vector<std::string>;

po::typed_value<std::string>* text(const char* name) {
  return po::value<std::string>()->value_name(name);
}

std::vector<NamedRecord> read_records(const Texts& files) {
  std::vector<NamedRecord> records;
  for (const std::string& file : files) {
    const std::string content = read_text_file(file);
    const std::size_t begin = content.find_first_not_of(" \t\r\n");
    if (begin != content.npos && content[begin] == '#')
      fail_input({file, ""}, "is not a record of orrery-gpu",
                 "if it is a log of nccl-tests, write --nccl " + file);
    records.push_back({file, calibration::parse_record(content, file)});
  }
  return records;
}

std::vector<Curve> read_logs(const Texts& files, const ParsedOptions& parsed) {
  NcclTestsAnswers answers;
  if (parsed.has("collective")) answers.collective = parsed.text("collective");
  if (parsed.has("ranks")) answers.ranks = parse_count(parsed.text("ranks"), "ranks", 1, 1 << 24);
  if (parsed.has("nodes")) answers.nodes = parse_count(parsed.text("nodes"), "nodes", 1, 1 << 24);
  std::vector<Curve> curves;
  for (const std::string& file : files)
    for (Curve& curve : read_nccl_tests(read_text_file(file), file, answers))
      curves.push_back(std::move(curve));
  return curves;
}

Calibration read_calibration(const std::string& file) {
  return parse_calibration(JsonValue::read_file(file), file);
}

// A GPU's name stands for the tables that come with the project; all else is a file.
Calibration named_calibration(const std::string& word) {
  const std::vector<std::string> gpus = list_catalog("topologies/gpus");
  if (std::find(gpus.begin(), gpus.end(), word) == gpus.end()) return read_calibration(word);
  std::optional<KernelTables> tables = read_kernel_tables(word);
  if (!tables || tables->gemm.empty())
    fail_input({}, "no kernels of '" + word + "' were measured",
               "measure some: orrery calibrate gpu");
  Calibration shipped;
  shipped.file = "calibration/data/kernels/" + tables->gpu + ".json";
  shipped.gpu = word + (tables->gpu == word ? "" : ", for which " + tables->gpu + " stands in");
  shipped.kernels = std::move(tables);
  return shipped;
}

}  // namespace

int calibrate_fit(const Arguments& arguments) {
  po::options_description options{"Options", 100};
  options.add_options()  //
      ("nccl", po::value<Texts>()->multitoken()->composing()->value_name("LOG.."),
       "logs of nccl-tests, text or JSON")                                                 //
      ("output", text("FILE"), "the calibration (also -o FILE)")                           //
      ("force", "replace a file that Orrery did not write")                                //
      ("gpu", text("NAME|FILE"), "the GPU, where the catalog does not know its name")      //
      ("own-attention", "take attention from orrery-gpu's own kernels, as its step runs")  //
      ("gpus-per-node", text("N"), "where a record spans nodes")                           //
      ("collective", text("NAME"), "what ran, where no log says it")                       //
      ("ranks", text("N"), "where no log names them")                                      //
      ("nodes", text("N"), "where no log lets hosts be counted")                           //
      ("help", "this text");
  const ParsedOptions parsed = parse_options(options, arguments, {});
  if (parsed.has("help")) {
    std::cout
        << "usage: orrery calibrate fit [RECORD...] [--nccl LOG...] -o FILE [options]\n\n"
           "Fits kernel times and collectives to records of orrery-gpu and logs of\n"
           "nccl-tests, all of one kind of GPU; orrery estimate --calibration FILE uses it.\n\n"
        << options;
    return exit_ok;
  }
  const Texts logs = parsed.has("nccl") ? parsed.values["nccl"].as<Texts>() : Texts{};
  if (parsed.words.empty() && logs.empty())
    fail_input({}, "nothing to fit", "name a record, or logs: --nccl LOG");
  const std::string output = required(parsed, "output", "say where it goes: -o mycluster.json");
  for (const Texts& inputs : {parsed.words, logs})
    if (std::find(inputs.begin(), inputs.end(), output) != inputs.end())
      fail_input({"", "--output"}, "'" + output + "' is also what is read", "name another file");
  FitOptions how;
  if (parsed.has("gpu")) how.gpu = parsed.text("gpu");
  how.own_attention = parsed.has("own-attention");
  if (parsed.has("gpus-per-node"))
    how.gpus_per_node = parse_count(parsed.text("gpus-per-node"), "gpus-per-node", 1, 1 << 16);
  const CalibrationFit fit =
      fit_calibration(read_records(parsed.words), read_logs(logs, parsed), how);
  const std::string document = calibration_json(fit);
  // What was fitted is what will be read.
  const Calibration calibration = parse_calibration(JsonValue::parse(document, output), output);
  OutputFiles files{parsed.has("force")};
  files.add(output, document);
  files.commit();
  std::cout << calibration_text(calibration, assess(calibration)) << fit_text(fit);
  return exit_ok;
}

int calibrate_show(const Arguments& arguments) {
  po::options_description options{"Options", 100};
  options.add_options()("svg", text("FILE"), "draw achieved against predicted rates")(
      "force", "replace a file that Orrery did not write")("help", "this text");
  const ParsedOptions parsed = parse_options(options, arguments, {});
  if (parsed.has("help")) {
    std::cout << "usage: orrery calibrate show FILE|GPU [--svg FILE]\n\n" << options;
    return exit_ok;
  }
  if (parsed.words.size() != 1)
    fail_input({}, parsed.words.empty() ? "show what?" : "one calibration at a time",
               "name a file that orrery calibrate fit wrote, or a GPU of the catalog");
  const Calibration calibration = named_calibration(parsed.words.front());
  const std::vector<AssessedTable> tables = assess(calibration);
  if (parsed.has("svg")) {
    if (parsed.text("svg") == parsed.words.front())
      fail_input({"", "--svg"}, "'" + parsed.text("svg") + "' is also what is read",
                 "name another file");
    OutputFiles files{parsed.has("force")};
    files.add(parsed.text("svg"), calibration_chart(calibration, tables));
    files.commit();
  }
  std::cout << calibration_text(calibration, tables);
  return exit_ok;
}

}  // namespace orrery
