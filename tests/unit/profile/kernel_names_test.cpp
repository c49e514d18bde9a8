#include "sim/profile/kernel_names.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/error_text.hpp"
#include "tests/support/temporary_folder.hpp"

namespace orrery::kernel_names_test {
namespace {

std::string work_of(const std::string& kernel) { return name(KernelNames{}.of(kernel)); }

// Names as public traces and sources have them.
TEST(KernelNames, KnowsWhatFrameworksRun) {
  const std::pair<const char*, const char*> known[] = {
      {"nvjet_tst_192x192_64x4_2x1_v_bz_coopA_TNT", "matrix_products"},
      {"sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize2x1x1_bias",
       "matrix_products"},
      {"void cutlass::device_kernel<deep_gemm::fp8_gemm_kernel<7168u, 2048u>>", "matrix_products"},
      {"ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_tn", "matrix_products"},
      {"void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<64, 128>", "attention"},
      {"cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7", "attention"},
      {"fmha_cutlassF_bf16_aligned_64x128_rf_sm80", "attention"},
      {"void at::native::vectorized_elementwise_kernel<4, CUDAFunctor_add<bf16>>", "memory_bound"},
      {"triton_poi_fused_mul_silu_0", "memory_bound"},
      {"void transformer_engine::normalization::rmsnorm_fwd_tuned_kernel<bf16>", "memory_bound"},
      {"void fused_rope_forward<bf16>", "memory_bound"},
      {"void multi_tensor_apply_kernel<L2NormFunctor<float>>", "memory_bound"},
      {"void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctorMaster<float>>",
       "optimizer"},
      {"ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "all_gather"},
      {"ncclDevKernel_AllReduce_Sum_bf16_TREE_LL", "all_reduce"},
      {"ncclKernel_ReduceScatter_RING_SIMPLE_Sum_bf16", "reduce_scatter"},
      {"ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", "send_recv"},
      {"ncclDevKernel_Broadcast_RING_LL", "other_collective"},
      {"void deep_ep::internode::dispatch<false>", "all_to_all"},
      {"void in_house::secret<float>", "unknown"},
  };
  for (const auto& [kernel, work] : known) EXPECT_EQ(work_of(kernel), work) << kernel;
}

// Megatron-LM's descriptions, and PyTorch's of a mesh's dimensions.
TEST(KernelNames, KnowsProcessGroups) {
  const std::pair<const char*, const char*> known[] = {
      {"TENSOR_MODEL_PARALLEL_GROUP", "tensor"},
      {"PIPELINE_MODEL_PARALLEL_GROUP", "pipeline"},
      {"DATA_PARALLEL_GROUP_WITH_CP", "data"},
      {"INTRA_PARTIAL_DATA_PARALLEL_GROUP_WITH_CP", "data"},
      {"EXPERT_DATA_PARALLEL_GROUP", "data"},
      {"EXPERT_MODEL_PARALLEL_GROUP", "expert"},
      {"EXPERT_TENSOR_PARALLEL_GROUP", "tensor"},
      {"TENSOR_AND_DATA_PARALLEL_GROUP_WITH_CP", "other"},
      {"CONTEXT_PARALLEL_GROUP", "context"},
      {"mesh_tp", "tensor"},
      {"mesh_dp_shard_cp", "data"},
      {"mesh_cp", "context"},
      {"mesh_pp", "pipeline"},
      {"mesh_ep", "expert"},
      {"default_pg", "other"},
      {"0", "other"},
      {"", "other"},
  };
  const KernelNames names;
  for (const auto& [group, use] : known) EXPECT_EQ(name(names.use_of(group)), use) << group;
}

TEST(KernelNames, OwnNamesComeFirst) {
  TemporaryFolder folder;
  const std::string path = (folder.path() / "own.json").string();
  const auto write = [&](const std::string& text) { std::ofstream{path} << text; };
  write(R"({"schema": "orrery.kernel_names/1", "kernels": [["attention", "In_House", "nvjet_x"]],
            "groups": [["expert", "default_pg"]]})");
  const KernelNames names{path};
  EXPECT_EQ(names.of("void in_house::secret<float>"), GpuWork::attention);
  EXPECT_EQ(names.of("nvjet_x"), GpuWork::attention);
  EXPECT_EQ(names.of("nvjet_y"), GpuWork::products);
  EXPECT_EQ(names.use_of("default_pg"), GroupUse::expert);

  const auto refusal = [&](const std::string& text) {
    write(text);
    return error_text([&] { KernelNames{path}; }).substr(path.size());
  };
  EXPECT_EQ(refusal(R"({"schema": "x"})"),
            ": /schema: is no list of kernels' names; write \"orrery.kernel_names/1\"");
  EXPECT_EQ(refusal(R"({"schema": "orrery.kernel_names/1", "kernels": [["atention", "x"]]})"),
            ": /kernels/0/0: 'atention' is not work of a GPU; did you mean 'attention'?");
  EXPECT_EQ(refusal(R"({"schema": "orrery.kernel_names/1", "groups": [["data"]]})"),
            ": /groups/0: names no pattern; write [\"context\", \"part_of_a_name\"]");
  EXPECT_EQ(refusal(R"({"schema": "orrery.kernel_names/1", "groups": [["data", ""]]})"),
            ": /groups/0/1: is empty; write a part of a name");
}

}  // namespace
}  // namespace orrery::kernel_names_test
