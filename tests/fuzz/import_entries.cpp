#include <optional>
#include <sstream>

#include "sim/calibration/nccl_tests.hpp"
#include "sim/formats/inventory/nccl_topology.hpp"
#include "sim/formats/inventory/smi_topology.hpp"
#include "sim/formats/shell/shell_script.hpp"
#include "sim/profile/kernel_record.hpp"
#include "sim/profile/step_profile.hpp"
#include "tests/fuzz/entry_groups.hpp"
#include "tests/fuzz/fuzz_checks.hpp"

namespace orrery {
namespace {

// With and without the answers that a log may lack. What comes out must be a document of ours.
bool fuzz_nccl_tests(const std::string& text) {
  bool any = false;
  for (const NcclTestsAnswers& answers :
       {NcclTestsAnswers{}, NcclTestsAnswers{"all_reduce", "system", 8, 1}})
    any |= is_accepted([&] {
      const std::vector<Curve> curves = read_nccl_tests(text, "fuzz.log", answers);
      for (const Curve& curve : curves)
        if (curve.points.empty() || curve.ranks < 1 || curve.nodes < 1) __builtin_trap();
      parsed(curves_json(curves)).at("curves").elements();
    });
  return any;
}

// No text stops it but one that grows without end, and no marks are left in what it says. Files
// that it reads are itself.
bool fuzz_shell(const std::string& text) {
  return is_accepted([&] {
    const auto itself = [&](const std::string&) { return std::optional{text}; };
    const ShellScript script =
        read_shell_script(text, "fuzz.sh", {{"TP", "2"}, {"1", "a"}}, itself);
    for (const auto& command : script.commands) {
      if (command.empty()) __builtin_trap();
      for (const ShellWord& word : command)
        if (word.file >= script.files.size() ||
            word.text.find_first_of("\x01\x02\x05\x06") != std::string::npos)
          __builtin_trap();
    }
  });
}

bool fuzz_nccl_topology(const std::string& text) {
  return is_accepted([&] {
    const SystemDraft draft = read_nccl_topology(text, "fuzz.xml");
    system_json(draft, {{"gpu", draft.gpu.empty() ? "h100-sxm" : draft.gpu}});
  });
}

bool fuzz_smi_topology(const std::string& text) {
  const SystemAnswers answers{
      {"gpu", "h100-sxm"}, {"nic-bandwidth", "400 Gb/s"}, {"network", "ethernet"}};
  return is_accepted([&] { system_json(read_smi_topology(text, "fuzz.txt", answers), answers); });
}

// An accepted profile is one step, nanosecond for nanosecond, and its record can be read again.
bool fuzz_kineto(const std::string& text) {
  static const KernelNames names;
  return is_accepted([&] {
    std::istringstream stream{text};
    const KinetoTrace trace = parse_kineto(stream, "fuzz.json");
    const StepProfile profile = profile_step(trace, names);
    std::int64_t ns = profile.host_ns + profile.idle_ns;
    for (const StepProfile::Part& part : profile.parts) {
      if (part.own_ns > part.busy_ns) __builtin_trap();
      ns += part.own_ns;
    }
    if (ns != profile.length_ns()) __builtin_trap();
    std::optional<TracedKernels> traced;
    if (!is_accepted([&] { traced = kernels_of_traces({trace}, names); })) return;
    const std::string record = calibration::record_json(traced->record);
    if (!is_accepted([&] { calibration::parse_record(record, "fuzz.json"); })) __builtin_trap();
  });
}

}  // namespace

std::vector<EntryPoint> import_entries() {
  using enum Shape;
  return {{"nccl_tests", fuzz_nccl_tests, bytes},
          {"shell", fuzz_shell, bytes},
          {"nccl_topology", fuzz_nccl_topology, bytes},
          {"smi_topology", fuzz_smi_topology, bytes},
          {"kineto", fuzz_kineto, json}};
}

}  // namespace orrery
