#include "sim/cli/calibrate_step.hpp"

#include <iostream>

#include "sim/calibration/driver_name.hpp"
#include "sim/calibration/measured_steps_text.hpp"
#include "sim/cli/options.hpp"
#include "sim/core/catalog.hpp"
#include "sim/core/text_file.hpp"
#include "sim/measurements/calibration.hpp"

namespace po = boost::program_options;

namespace orrery {
namespace {

// Any system that has this GPU: one GPU alone meets nothing else of it.
System system_of(const std::string& gpu) {
  for (const std::string& name : list_catalog("topologies/systems"))
    if (System system = read_system(name, {"", "--system"}); system.gpu.name == gpu) return system;
  fail_input({}, "no system of the catalog has the GPU '" + gpu + "'", "give --system NAME|FILE");
}

}  // namespace

int calibrate_step(const Arguments& arguments) {
  po::options_description options{"Options", 100};
  const auto text = [](const char* name) { return po::value<std::string>()->value_name(name); };
  options.add_options()  //
      ("calibration", text("FILE"),
       "predict with this: orrery calibrate fit "                                      //
       "--own-attention; else with the tables of the GPU")                             //
      ("system", text("NAME|FILE"), "whose GPU it is, where the catalog cannot tell")  //
      ("help", "this text");
  const ParsedOptions parsed = parse_options(options, arguments, {});
  if (parsed.has("help")) {
    std::cout << "usage: orrery calibrate step RECORD [--calibration FILE] [options]\n\n"
                 "Predicts the training steps that orrery-gpu measured.\n\n"
              << options;
    return exit_ok;
  }
  if (parsed.words.size() != 1)
    fail_input({}, parsed.words.empty() ? "which steps?" : "one record at a time",
               "name a record of orrery-gpu");
  const std::string& file = parsed.words.front();
  const calibration::Record record = calibration::parse_record(read_text_file(file), file);
  std::string gpu = catalog_gpu(record.machine.gpu);
  if (parsed.has("calibration")) {
    const std::string path = parsed.text("calibration");
    gpu = parse_calibration(JsonValue::read_file(path), path).gpu;
  }
  if (gpu.empty() && !parsed.has("system"))
    fail_input({file, "/machine/gpu"}, "'" + record.machine.gpu + "' is not a GPU of the catalog",
               "give --calibration FILE or --system NAME|FILE");
  System system =
      parsed.has("system") ? read_system(parsed.text("system"), {"", "--system"}) : system_of(gpu);
  require_same_gpu(record.machine, system.gpu, file,
                   "give --system NAME|FILE: orrery list systems");
  if (parsed.has("calibration"))
    calibrate(system, parsed.text("calibration"), {"", "--calibration"});
  const std::vector<MeasuredStep> steps = predict_steps(record, file, system);
  std::cout << "Steps of      " << file << ", " << record.machine.gpu << "\nPredicted by  "
            << (parsed.has("calibration") ? parsed.text("calibration")
                                          : "the tables of " + system.gpu.name)
            << "\n\n"
            << measured_steps_text(steps);
  return exit_ok;
}

}  // namespace orrery
