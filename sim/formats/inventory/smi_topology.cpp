#include "sim/formats/inventory/smi_topology.hpp"

#include <algorithm>
#include <filesystem>
#include <set>

#include "sim/core/json_value.hpp"
#include "sim/core/text_file.hpp"

namespace orrery {
namespace {

// The header is underlined by escape sequences where it was captured from a terminal.
std::string without_escapes(const std::string& text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\x1b' || i + 1 == text.size() || text[i + 1] != '[') {
      plain += text[i];
      continue;
    }
    i = std::min(text.find_first_not_of("0123456789;", i + 2), text.size());
  }
  return plain;
}

bool is_gpu(std::string_view name) { return name.starts_with("GPU"); }

// Columns end where "CPU Affinity" starts. RDMA devices stand under their own names up to driver
// 515 and as NIC0, NIC1, ... since.
bool is_device(std::string_view name) {
  static constexpr std::string_view starts[] = {"GPU", "NIC", "mlx", "bnxt", "efa", "rdmap"};
  return std::any_of(std::begin(starts), std::end(starts),
                     [&](std::string_view start) { return name.starts_with(start); });
}

/// NVLinks of a cell, 0 for a route over PCIe; nothing for other text.
std::optional<int> links_of(std::string_view cell) {
  static constexpr std::string_view routes[] = {"X", "PIX", "PXB", "PHB", "NODE", "SYS"};
  if (std::find(std::begin(routes), std::end(routes), cell) != std::end(routes)) return 0;
  constexpr int most_links = 64;  // 18 are the most that exist.
  if (cell.starts_with("NV")) return plain_integer(cell.substr(2), most_links);
  return std::nullopt;
}

struct Matrix {
  Place place;
  std::vector<std::string> names;
  std::vector<std::vector<int>> links;  ///< NVLinks between two of them.
  int gpus = 0;
  int nics = 0;
};

class Reader {
 public:
  Reader(const std::string& text, const std::string& file) : file_{file}, lines_{lines_of(text)} {}

  Matrix matrix() {
    std::size_t at = 0;
    while (at < lines_.size() && !read_header(at)) ++at;
    if (at == lines_.size())
      fail_input({file_, ""}, "has no matrix of nvidia-smi (no header with GPU0)",
                 "give the whole output of nvidia-smi topo -m");
    for (++at; at < lines_.size() && rows_ < matrix_.names.size(); ++at) {
      const auto words = words_of(lines_[at]);
      if (words.empty()) continue;
      if (words[0] != matrix_.names[rows_]) break;
      read_row(words, at);
    }
    if (rows_ < matrix_.names.size())
      fail_input({file_, ""}, "has no row of " + shown_text(matrix_.names[rows_]),
                 "the matrix was cut off; give the whole output of nvidia-smi topo -m");
    check_symmetry();
    for (; at < lines_.size(); ++at) read_legend(at);
    return std::move(matrix_);
  }

 private:
  bool read_header(std::size_t at) {
    const auto words = words_of(lines_[at]);
    if (words.empty() || words[0] != "GPU0") return false;
    if (words.size() > 1 && words[1] == "X") return false;  // A row whose header is missing.
    std::set<std::string> names;
    for (const std::string_view word : words) {
      if (!is_device(word)) break;
      const std::string name{word};
      if (!names.insert(name).second)
        fail_input(line_place(file_, at), "two columns are called " + shown_text(name),
                   "the matrix is damaged; run nvidia-smi topo -m again");
      ++(is_gpu(word) ? matrix_.gpus : matrix_.nics);
      matrix_.names.push_back(name);
    }
    constexpr std::size_t most = 1024;
    if (names.size() > most)
      fail_input(line_place(file_, at), "names more than 1024 devices", "no node has so many");
    matrix_.place = line_place(file_, at);
    return true;
  }

  void read_row(const std::vector<std::string_view>& words, std::size_t at) {
    const std::size_t count = matrix_.names.size();
    if (words.size() < count + 1)
      fail_input(line_place(file_, at),
                 "has " + std::to_string(words.size() - 1) + " cells for " + std::to_string(count) +
                     " columns",
                 "the matrix was cut off; give the whole output of nvidia-smi topo -m");
    std::vector<int> links;
    for (std::size_t i = 0; i < count; ++i) {
      const auto found = links_of(words[i + 1]);
      const bool own = words[i + 1] == "X";
      if (!found || own != (i == rows_))
        fail_input(line_place(file_, at),
                   "'" + shown_text(std::string{words[i + 1]}) + "' stands for the way from " +
                       shown_text(matrix_.names[rows_]) + " to " + shown_text(matrix_.names[i]),
                   own == (i == rows_) ? "write NV#, PIX, PXB, PHB, NODE or SYS"
                                       : "X marks a device's way to itself, and nothing else");
      links.push_back(*found);
    }
    matrix_.links.push_back(std::move(links));
    ++rows_;
  }

  void check_symmetry() const {
    for (std::size_t i = 0; i < matrix_.names.size(); ++i)
      for (std::size_t j = 0; j < i; ++j)
        if (matrix_.links[i][j] != matrix_.links[j][i])
          fail_input(matrix_.place,
                     shown_text(matrix_.names[i]) + " has " + std::to_string(matrix_.links[i][j]) +
                         " NVLinks to " + shown_text(matrix_.names[j]) + ", which has " +
                         std::to_string(matrix_.links[j][i]) + " back",
                     "the matrix is damaged; run nvidia-smi topo -m again");
  }

  // "  NIC0: mlx5_0"
  void read_legend(std::size_t at) {
    const auto words = words_of(lines_[at]);
    if (words.size() != 2 || !words[0].starts_with("NIC") || !words[0].ends_with(':')) return;
    if (!nic_names_.insert(std::string{words[1]}).second)
      fail_input(line_place(file_, at), "two NICs are called " + shown_text(std::string{words[1]}),
                 "the legend is damaged; run nvidia-smi topo -m again");
  }

  std::string file_;
  std::vector<std::string_view> lines_;
  Matrix matrix_;
  std::size_t rows_ = 0;
  std::set<std::string> nic_names_;
};

// True if NVLinks lead from GPU 0 to all others, over others if need be.
bool joins_all(const Matrix& matrix, const std::vector<std::size_t>& gpus) {
  std::vector<std::size_t> reached{gpus.front()};
  for (std::size_t next = 0; next < reached.size(); ++next)
    for (const std::size_t gpu : gpus)
      if (matrix.links[reached[next]][gpu] > 0 &&
          std::find(reached.begin(), reached.end(), gpu) == reached.end())
        reached.push_back(gpu);
  return reached.size() == gpus.size();
}

// A switch shows the links of a GPU in each of its cells, a mesh shows them divided among the
// cells: only the number of links that the GPU has tells one from the other. Links that do not join
// all GPUs are bridges of a PCIe node.
void set_wiring(SystemDraft& draft, const Matrix& matrix, const Gpu& gpu) {
  std::vector<std::size_t> gpus;
  for (std::size_t i = 0; i < matrix.names.size(); ++i)
    if (is_gpu(matrix.names[i])) gpus.push_back(i);
  std::vector<int> sums;
  std::set<int> cells;  // Numbers of links.
  for (std::size_t a = 0; a < gpus.size(); ++a) {
    sums.push_back(0);
    for (std::size_t b = 0; b < gpus.size(); ++b) {
      if (a == b) continue;
      const int links = matrix.links[gpus[a]][gpus[b]];
      sums.back() += links;
      cells.insert(links);
      if (a < b && links > 0)
        draft.nvlink_pairs.push_back({static_cast<int>(a), static_cast<int>(b), links});
    }
  }
  if (draft.nvlink_pairs.empty()) return;  // PCIe.
  const int most = *cells.rbegin();
  const int fewest_sum = *std::min_element(sums.begin(), sums.end());
  const double per_link = nvlink_rate(gpu, matrix.place).si();
  const int own = static_cast<int>(gpu.nvlink.si() / per_link + 0.5);
  if (most > own)
    fail_input(matrix.place,
               "shows " + std::to_string(most) + " NVLinks, but the GPU '" + gpu.name + "' has " +
                   std::to_string(own),
               "check --gpu");
  const bool has_all_pairs = *cells.begin() > 0;
  if (gpus.size() > 2 && cells.size() == 1 && most * static_cast<int>(gpus.size() - 1) > own) {
    draft.wiring = NodeWiring::nvswitch;
    draft.nvlinks = most;
    draft.nvlink_pairs.clear();
    draft.notes.push_back("every pair shows " + std::to_string(most) +
                          " NVLinks, more than a mesh could: the wiring is nvswitch");
  } else if (fewest_sum <= own &&
             (has_all_pairs || (gpus.size() == 8 && joins_all(matrix, gpus)))) {
    // Eight Voltas form a hybrid cube mesh, where not every pair is joined (DGX-1, V100).
    draft.wiring = NodeWiring::nvlink_mesh;
    draft.nvlinks = fewest_sum;
    draft.nvlink_pairs.clear();
    draft.notes.push_back("a GPU's NVLinks to all others are " + std::to_string(fewest_sum) +
                          ": the wiring is nvlink_mesh; give --wiring nvswitch if there is one");
  } else if (*std::max_element(sums.begin(), sums.end()) <= own) {
    draft.notes.push_back("NVLinks join only some GPUs of the node: the wiring is pcie, with " +
                          std::to_string(draft.nvlink_pairs.size()) + " nvlink_pairs");
  } else {
    draft.nvlink_pairs.clear();
    draft.notes.push_back("NVLinks do not join all GPUs of the node, which counts as PCIe");
  }
}

}  // namespace

SystemDraft read_smi_topology(const std::string& text, const std::string& file,
                              const SystemAnswers& answers) {
  require_text(text, file, "the output of nvidia-smi topo -m");
  const std::string plain = without_escapes(text);
  const Matrix matrix = Reader{plain, file}.matrix();
  SystemDraft draft;
  draft.file = file;
  draft.source =
      "nvidia-smi topology " + shown_text(std::filesystem::path{file}.filename().string());
  draft.gpus_per_node = matrix.gpus;
  draft.nvlink_domain = matrix.gpus;
  draft.nics_per_node = matrix.nics;
  if (matrix.nics)
    draft.notes.push_back("the matrix has " + std::to_string(matrix.nics) +
                          " NICs; give --nics if only some of them carry GPU traffic");
  set_wiring(draft, matrix, gpu_of(draft, answers));
  return draft;
}

}  // namespace orrery
