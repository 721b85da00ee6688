"""Skills: folders of instructions (`SKILL.md`), files and scripts that a model loads when it needs them.

`skills.py` is the resource that says where skills are, `skill_sources.py` brings them to this machine, `skill.py` reads one,
`skill_library.py` has those of an agent, `setup_skills.py` gives them to a chat model.
"""
