#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/model/hugging_face.hpp"
#include "sim/model/model.hpp"

namespace orrery {

/// A key that is true or false, and what it is said of. Absent, these stay as the family has them.
struct FamilySwitch {
  std::string key;
  std::vector<bool Model::*> flags;
};

/// Which layers have a window where a file has no `layer_types`.
enum class FamilyWindow {
  none,
  all,
  first_of_two,
  pattern,  ///< All but each `sliding_window_pattern`-th.
  after,    ///< From `max_window_layers` on; absent, `pattern`.
  qwen,     ///< The same if `use_sliding_window` says so.
  listed,   ///< If `use_sliding_window` says so, those that `layer_types` names.
  own,      ///< Read by `Family::rest`.
};

/// A family's width of the MLP: where a file has none, it is four times the hidden size.
constexpr std::int64_t four_times_hidden = -4;

/// The width of a head's values in latent attention: where a file has none, hidden size over heads.
constexpr std::int64_t hidden_per_head = -1;

/// The width of an expert that is the file's intermediate_size.
constexpr std::int64_t of_ffn = -1;

/// Experts where a file does not say how many and where.
struct FamilyExperts {
  std::int64_t width = 0, count = 0, per_token = 0;  ///< 0: the file must say it.
  std::int64_t shared = 0;
  std::int64_t shared_width = 0;  ///< Of all shared experts together; 0: that of `shared` experts.
  std::int64_t dense_layers = 0;
  bool correction_bias = false;
  std::int64_t groups = 1, groups_per_token = 1;
};

/// What a model_type of transformers is. All families share one table of their keys' spellings
/// (hugging_face_layers.cpp).
struct Family {
  std::string type;          ///< "model_type"
  std::string architecture;  ///< Beginning of the entry of "architectures".
  /// The values of absent keys: flags, longest sequence and head_dim (0: hidden / heads).
  /// transformers writes all other sizes into a file's first level, and leaves those that equal the
  /// class's out of a text_config; so they are defaults there only.
  Model absent;
  std::vector<FamilySwitch> switches{};
  FamilyWindow window = FamilyWindow::none;
  std::int64_t window_tokens = 0;
  int pattern = 0;
  std::optional<FamilyExperts> experts{};
  std::string harmless{};  ///< Keys that change no shape here, but do elsewhere.
  void (*rest)(ConfigKeys&, Model&) = nullptr;  ///< Reads what no other field says.
  bool patterned = false;                       ///< `rest` reads layers of several kinds.
};

/// Defaults are those of the configuration classes in huggingface/transformers 5.2
/// (src/transformers/models/<model_type>/configuration_<model_type>.py), with which
/// transformers_classes.tsv of the tests compares them. These have no class there, and follow files
/// published with the weights: Yi, aquila, bailing_moe, baichuan, chatglm, deepseek, exaone,
/// hunyuan, internlm, internlm2, internlm3, kimi_k2, llava, mimo, minicpm, minicpm3, orion, phi3_v,
/// phi4mm, qwen, xverse. mistral4 is newer: commit 008e5743.
const std::vector<Family>& hugging_face_families();

/// Reads a family's keys. `is_part` says that the file is the text part of another.
Model read_family(const Family& family, ConfigKeys& config, bool is_part);

/// Reads the keys of experts into Model::experts and layer_has_experts.
void read_family_experts(ConfigKeys& config, const FamilyExperts& absent, Model& model);

/// Sets the window of the layers that "layer_types" names, or else of those of `is_local`.
void set_layer_windows(ConfigKeys& config, Model& model, std::int64_t window,
                       const std::vector<bool>& is_local);

}  // namespace orrery
