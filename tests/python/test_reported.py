"""What was once wrong, unsafe or refused in a PyTorch house, each with the tests that failed then. They must exist."""

import pathlib
import re

import pytest

#: What was reported -> file beside this one and the names of its tests.
REPORTED = {
    "a trace without gradients holds an address": {
        "test_tracing.py": [
            "a_trace_is_right_and_holds_no_address",
            "a_trace_computes_the_same_in_another_process",
            "levels_that_a_trace_reads_from_shapes_are_numbers",
        ]
    },
    "what wraps a layer of MSDeformAttn is ignored or fails": {
        "test_wrapped_layers.py": [
            "what_wraps_a_layer_counts",
            "layers_of_int8_run",
            "sharded_layers_train_as_whole_ones",
        ]
    },
    "references that are not finite give gradients that are not": {
        "test_wrapped_layers.py": ["queries_without_a_finite_reference_count_nothing"]
    },
    "BEVFormer's classes stay on mmcv's kernel, and patch() says nothing": {
        "test_doors.py": ["classes_of_bevformer_come_along_with_mmcv", "patches_warn_where_they_replace_nothing"]
    },
    "repositories without a door": {
        "test_doors.py": [
            "functions_of_repositories_run_on_tmaops",
            "compiled_extensions_of_repositories_run_on_tmaops",
            "layers_that_hold_the_function_are_patched_in_a_model",
            "the_slot_of_libreyolo_is_taken",
            "every_row_of_the_documents_is_tested",
        ]
    },
    "an older extension shadows the wheel's module": {
        "test_doors.py": [
            "an_extension_that_shadows_the_wheel_is_named",
            "a_compiled_extension_that_was_imported_is_given_our_functions",
        ]
    },
    "mmcv's function of the CPU with six arguments": {
        "test_compat.py": ["mmcv_is_patched_wherever_it_was_imported_and_given_back"]
    },
    "MultiScaleDeformableAttention breaks compiled graphs": {
        "test_compat.py": ["the_extension_module_is_compiled_in_one_graph"]
    },
    "channels before pixels are slow": {
        "test_layouts.py": [
            "vectors_read_channels_that_lie_apart",
            "the_parts_of_one_tensor_are_read_in_place_and_have_its_gradients",
        ]
    },
    "frames and dictionaries start a process": {"test_columns.py": ["columns_are_resampled_without_another_process"]},
    "a wheel without its native half or oneDNN does not say how to get them": {
        "test_wheel.py": [
            "the_last_line_of_make_wheel_says_what_is_in_it_and_how_to_get_the_rest",
            "auditwheel_finds_it_fit_for_glibc_2_28",
        ]
    },
    "meta and fake tensors need gradients": {"test_tracing.py": ["meta_and_fake_tensors_need_no_gradients"]},
    "no export to ONNX": {"test_onnx.py": ["onnxruntime_computes_the_same", "what_onnx_has_not_is_refused_by_name"]},
    "the two bindings refuse in other words": {
        "test_bindings.py": ["wrong_calls_are_refused_by_name_and_alike_by_both_bindings"]
    },
    "layers of one dimension, of f64 and under autocast": {
        "test_linear_and_axes.py": [
            "layers_take_what_those_of_torch_take",
            "autocast_converts_as_for_layers_of_torch",
            "layers_pass_gradcheck_and_are_printed",
        ]
    },
    "layers in f32 on a CPU are slower than torch's": {
        "test_linear_and_axes.py": ["f32_on_the_cpu_is_the_work_of_torch"]
    },
    "values without a batch": {"test_linear_and_axes.py": ["samples_lie_along_any_axis"]},
    "a small call spends its time in Python": {
        "test_linear_and_axes.py": ["a_small_call_makes_few_calls_in_python"],
        "test_torch.py": ["what_watches_operators_sees_those_with_all_arguments"],
    },
    "blocks of the guide that are no programs": {"test_docs.py": ["every_block_of_the_guide_runs"]},
    "signatures that say Any or str": {
        "test_wheel.py": [
            "the_package_passes_a_type_check_and_a_client_a_strict_one_but_for_wrong_words",
            "no_public_signature_says_any",
        ]
    },
    "a plan that is pickled": {"test_package.py": ["a_plan_that_is_pickled_says_why_it_cannot_be"]},
    "JAX cannot compile": {
        "test_jax.py": [
            "a_compiled_program_computes_what_the_call_does",
            "vmap_makes_each_call",
            "what_cannot_be_traced_is_refused_by_name",
        ]
    },
    "vmap is refused": {
        "test_torch.py": [
            "vmap_joins_its_dimension_to_the_batch_of_attention",
            "vmap_joins_its_dimension_to_the_batch_of_resample",
            "vmap_takes_packed_rows_and_matrices",
        ]
    },
    "the flop counter sees nothing": {"test_torch.py": ["the_flop_counter_of_torch_sees_the_operators"]},
    "compiled models are slower": {
        "test_transformers.py": [
            "compiled_graphs_break_nowhere_that_the_models_own_code_does_not",
            "the_operator_makes_the_models_check_of_levels",
            "under_autocast_nothing_stands_between_the_operator_and_the_next_linear",
        ]
    },
    "variants of an operator that only the tool has": {
        "test_wheel.py": ["variants_that_are_only_compared_are_not_in_it"]
    },
}


@pytest.mark.parametrize("reported", REPORTED)
def test_every_report_has_its_tests(reported):
    for file, names in REPORTED[reported].items():
        text = (pathlib.Path(__file__).parent / file).read_text(encoding="utf-8")
        there = set(re.findall(r"^def test_(\w+)", text, re.MULTILINE))
        assert set(names) <= there, f"{file} has no test {', '.join(set(names) - there)}"
