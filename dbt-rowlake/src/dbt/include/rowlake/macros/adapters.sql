{% macro rowlake__create_view_as(relation, sql) -%}
  {%- if relation.schema -%}
    {{ return(spark__create_view_as(relation, sql)) }}
  {%- else -%}
    {{ return(spark__create_temporary_view(relation, sql)) }}
  {%- endif -%}
{%- endmacro %}

{# a table of the other format cannot be replaced in place #}
{% macro rowlake__create_table_as(temporary, relation, compiled_code, language='sql') -%}
  {%- if language != 'sql' -%}
    {% do exceptions.raise_compiler_error('dbt-rowlake runs no Python models: write ' ~ relation ~ ' in SQL.') %}
  {%- endif -%}
  {{ return(spark__create_table_as(temporary, relation, compiled_code, language)) }}
{%- endmacro %}

{% materialization view, adapter='rowlake' -%}
  {%- if adapter.keeps_views() -%}
    {{ return(create_or_replace_view()) }}
  {%- endif -%}
  {# only REST catalogs keep views: elsewhere a view is a table, made again by every run #}
  {%- do log('The catalog keeps no views: ' ~ this ~ ' is built as a table.') -%}
  {%- set existing = load_cached_relation(this) -%}
  {%- set target = this.incorporate(type='table') -%}
  {{ run_hooks(pre_hooks) }}
  {%- if existing is not none and not existing.is_iceberg and config.get('file_format') == 'iceberg' -%}
    {%- do adapter.drop_relation(existing) -%}
  {%- endif -%}
  {%- call statement('main') -%}
    {{ create_table_as(False, target, sql) }}
  {%- endcall -%}
  {% do persist_docs(target, model) %}
  {{ run_hooks(post_hooks) }}
  {{ return({'relations': [target]}) }}
{%- endmaterialization %}
