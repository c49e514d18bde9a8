#include "sim/cli/import_kineto.hpp"

#include <algorithm>
#include <iostream>

#include "sim/core/number_text.hpp"
#include "sim/core/output_files.hpp"
#include "sim/profile/kernel_record.hpp"

namespace po = boost::program_options;

namespace orrery {

int import_kineto(const Arguments& arguments) {
  po::options_description options{"Options", 100};
  const auto file = [] { return po::value<std::string>()->value_name("FILE"); };
  options.add_options()                                                                          //
      ("kernels", file(), "write the record there instead of to stdout, and say what is in it")  //
      ("names", file(), "what your kernels do, before workloads/kernel_names.json")              //
      ("force", "replace a file that Orrery did not write")("help", "this text");
  const ParsedOptions parsed = parse_options(options, arguments, {});
  if (parsed.has("help")) {
    std::cout << "usage: orrery import kineto FILE... [--kernels RECORD] [options]\n\n"
                 "Reads traces of PyTorch's profiler, written with record_shapes=True; writes how "
                 "long each\nshape of product and attention took, for orrery calibrate fit.\n\n"
              << options;
    return exit_ok;
  }
  if (parsed.words.empty()) fail_input({}, "nothing to import", "name one or more traces");
  const std::string output = parsed.has("kernels") ? parsed.text("kernels") : "";
  if (std::find(parsed.words.begin(), parsed.words.end(), output) != parsed.words.end())
    fail_input({"", "--kernels"}, "'" + output + "' is also what is read", "name another file");
  const KernelNames names{parsed.has("names") ? parsed.text("names") : ""};
  std::vector<KinetoTrace> traces;
  for (const std::string& word : parsed.words) traces.push_back(read_kineto(word));
  const TracedKernels traced = kernels_of_traces(traces, names);
  const std::string text = calibration::record_json(traced.record);
  if (output.empty()) {
    std::cout << text;
  } else {
    OutputFiles files{parsed.has("force")};
    files.add(output, text);
    files.commit();
    std::int64_t runs = 0;
    for (const calibration::Measurement& one : traced.record.measurements)
      runs += one.warm->samples;
    std::cout << output << ": " << grouped(std::ssize(traced.record.measurements)) << " shapes, "
              << grouped(runs) << " runs, on " << traced.record.machine.gpu << "\n";
  }
  for (const std::string& note : traced.notes) std::cerr << "orrery: note: " << note << "\n";
  return exit_ok;
}

}  // namespace orrery
