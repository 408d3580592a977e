"""What was once wrong, lost or refused in data of others, each with the tests that show that it is right. They must exist."""

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
CLI, IO, PYTHON = "tool/cli/resample_", "tool/io/", "python/"

#: What was reported -> file below tests/ and the names of tests there.
REPORTED = {
    # wrong or lost data, without a word
    "whole and real times in ms, us and s since 1970": {
        "datasets/times_test.py": ["dates_of_our_time_say_their_unit_in_parquet_and_hdf5"],
        "recording/time_units_test.cpp": ["dates_say_their_unit_unless_they_step_like_a_clock_since_the_start"],
    },
    "whole times without a unit differ from door to door": {
        PYTHON + "test_rule_book.py": ["every_door_reads_times_alike"]
    },
    "quaternions by name, by norm, in lists and with flips are linear": {
        PYTHON + "test_rule_book.py": [
            "every_column_of_the_table_has_its_mode",
            "every_door_gives_the_same_bits_and_words",
        ]
    },
    "one message that is not ROS ends the reading": {
        "datasets/recordings_test.py": ["a_message_of_json_beside_those_of_ros_costs_nothing"]
    },
    "empty velocities make a table that nothing reads": {
        "datasets/recordings_test.py": ["joints_are_columns_by_their_names_in_any_order"]
    },
    "a topic without columns cuts the span": {
        "datasets/recordings_test.py": ["what_is_latched_or_has_no_column_does_not_cut_the_span"]
    },
    "joints change places": {
        "datasets/recordings_test.py": [
            "joints_are_columns_by_their_names_in_any_order",
            "two_publishers_of_joints_on_one_topic_do_not_mix",
        ]
    },
    "control_freq stays that of the input": {
        "datasets/twice_test.py": ["a_run_over_the_result_of_a_run_knows_its_rate"]
    },
    "ends and rewards of episodes are lost": {
        "datasets/twice_test.py": ["rewards_keep_their_sum_and_other_columns_do_on_demand"],
        CLI + "intervals_test.cpp": ["rewards_add_up_and_flags_reach_one_target_each"],
    },
    "actions that are differences are not scaled": {
        CLI + "intervals_test.cpp": ["differences_of_actions_are_added_up_when_asked_and_it_is_said_that_they_are_not"]
    },
    "an array of another length is copied beside resampled ones": {
        "datasets/times_test.py": ["an_array_of_another_length_beside_samples_is_named"],
        PYTHON + "test_columns.py": ["an_array_of_nearly_as_many_rows_is_a_warning"],
    },
    "events vanish or occur twice": {"datasets/twice_test.py": ["every_event_occurs_once_at_the_nearest_target"]},
    "aliasing": {
        "datasets/times_test.py": ["what_the_new_rate_cannot_hold_is_said_with_the_mode_that_removes_it"],
        CLI + "intervals_test.cpp": ["a_vibration_above_half_the_new_rate_is_a_warning_and_lowpass_removes_it"],
    },
    # refused without a way out
    "latched topics refuse a recording": {
        "datasets/recordings_test.py": [
            "what_is_latched_or_has_no_column_does_not_cut_the_span",
            "topics_are_chosen_by_name_and_pattern",
            "transforms_are_poses_by_their_frames_and_turn_by_slerp",
        ]
    },
    "stamps of 0, and simulated time": {
        "datasets/recordings_test.py": [
            "stamps_that_are_not_set_fall_back_to_the_time_of_recording",
            "simulated_time_beside_wall_time_is_refused_with_the_option_that_helps",
        ]
    },
    "a repeated stamp": {
        "datasets/times_test.py": [
            "one_repeated_stamp_costs_one_step_and_no_episode",
            "samples_out_of_order_are_sorted_on_demand",
            "snap_start_end_align_and_offset_place_the_targets",
        ]
    },
    "what a refused run left blocks the next": {
        "datasets/job_test.py": [
            "a_refusal_leaves_nothing_and_what_a_killed_run_left_does_not_block_other_options",
            "a_unit_that_is_refused_in_the_middle_leaves_nothing",
        ]
    },
    "ISO 8601 text": {"datasets/times_test.py": ["text_and_datetimes_with_zones_are_times_and_come_out_as_they_were"]},
    "bags, databases, Zarr, tfrecords, LeRobot v2.1": {
        "datasets/recordings_test.py": ["every_kind_of_recording_gives_the_same_columns_on_one_clock"],
        "datasets/zarr_test.py": ["every_array_comes_onto_the_new_rate_with_its_chunks_and_codecs"],
        "datasets/job_test.py": ["places_that_cannot_work_are_refused_by_name_before_any_work"],
        "datasets/lerobot_v2_test.py": ["every_file_line_and_statistic_is_that_of_the_new_rate"],
    },
    "files of one recording are episodes": {"datasets/recordings_test.py": ["a_recording_in_several_files_is_one"]},
    "recordings to LeRobot": {
        "datasets/new_set_test.py": ["recordings_become_a_set_with_the_features_that_were_named"],
        "datasets/lerobot_own_test.py": ["its_loader_takes_a_set_that_was_made_of_tables"],
    },
    # crashes and limits
    "times of uint64, empty tables, names that are not UTF-8": {
        "datasets/times_test.py": ["stamps_beyond_64_bits_are_refused_by_name"],
        "datasets/job_test.py": ["places_that_cannot_work_are_refused_by_name_before_any_work"],
        "datasets/parquet_test.py": ["tables_without_rows_beside_others_cost_nothing"],
    },
    "an output that is a dangling link, or inside the input": {
        "datasets/job_test.py": ["places_that_cannot_work_are_refused_by_name_before_any_work"]
    },
    "memory grows with the episodes": {"datasets/job_test.py": ["memory_hardly_grows_with_the_number_of_episodes"]},
    "recordings are decoded twice": {
        "datasets/recordings_test.py": ["several_recordings_are_decoded_once_by_any_number_of_workers"]
    },
    "videos share bytes with the source": {
        "datasets/lerobot_v2_test.py": ["videos_share_bytes_with_the_source_or_are_copied"]
    },
    # one recording
    "the number of the row becomes the time": {
        IO + "recording_test.cpp": ["an_index_of_rows_is_no_time_where_another_column_can_be_it"]
    },
    "whole dates in ms and us": {
        IO + "recording_test.cpp": ["dates_from_1990_to_2100_tell_the_unit_of_whole_and_real_numbers"]
    },
    "a .txt is a TUM trajectory": {
        IO + "recording_test.cpp": ["a_txt_that_is_no_trajectory_names_the_format_that_reads_it"]
    },
    "lines above the header": {
        IO + "preamble_test.cpp": ["tables_of_opensim_begin_below_endheader"],
        IO + "recording_test.cpp": ["lines_above_a_header_are_skipped_and_lines_keep_their_numbers"],
    },
    "angles by value": {CLI + "poses_test.cpp": ["what_jumps_by_a_turn_is_taken_for_an_angle_and_said"]},
    "twelve numbers of a pose": {CLI + "poses_test.cpp": ["rows_of_a_pose_matrix_are_said_to_lose_their_rotation"]},
    "several objects in a csv": {
        CLI + "columns_test.cpp": ["rows_of_each_value_of_a_group_are_an_episode"],
        PYTHON + "test_columns.py": ["the_rows_of_each_value_of_a_group_are_an_episode"],
    },
    "clocks that differ by an offset": {CLI + "poses_test.cpp": ["a_clock_that_is_behind_is_corrected"]},
    "names with the frames behind them, a first column of names": {
        "recording/column_rules_test.cpp": ["components_may_stand_in_front_of_names_of_frames"],
        IO + "recording_test.cpp": ["an_index_of_rows_is_no_time_where_another_column_can_be_it"],
    },
}


@pytest.mark.parametrize("reported", REPORTED)
def test_every_report_has_its_tests(reported):
    for file, names in REPORTED[reported].items():
        text = (TESTS / file).read_text(encoding="utf-8")
        there = set(
            re.findall(r"^def test_(\w+)" if file.endswith(".py") else r"^TEST(?:_F)?\(\w+, (\w+)\)", text, re.M)
        )
        assert set(names) <= there, f"{file} has no test {', '.join(set(names) - there)}"
